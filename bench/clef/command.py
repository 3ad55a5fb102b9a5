"""`python -m bench clef`: this engine against a plain transformers forward, on random weights.

Interleaved in one run, in ratios; the engine asked twice is the control. With `--device cuda` the
same at full size, against the device's own rate of products; `bench/clef/gpu.sh` does it all.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from bench.clef.clocks import (
    median_ms,
    operations,
    peak_bytes,
    peak_flops,
    peak_fp8_flops,
    took_ms,
)
from bench.clef.crowd import throughput
from bench.clef.models import SIZES, Size, flops, random_model
from bench.clef.naive import Naive
from bench.clef.prompts import prompt
from bench.machine import load_average, machine
from engines.clef.model import Model
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Prompt
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings

_QUESTION = 84
_STATE, _ASKED, _QUESTIONS = 3000, 75, 4
_LONG = 8000
"""From this length on, a third of the rounds is enough."""
_SETTLED = 0.1
"""How far the control may be from 1 before a run counts for nothing."""
_FLOORS = {"bf16": {334: 2.5, 3400: 1.45, 16_000: 1.4}, "fp8": {334: 3.3, 3400: 1.65, 16_000: 1.6}}
"""Times of the floor that are to be reached on a GPU."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was measured."""

    what: str
    wanted: str
    measured: str
    verdict: str
    """`met`, `missed`, `unclear` or `-`."""


def main(argv: list[str]) -> int:
    """Measure, print, write; 1 when a goal is missed."""
    chosen = _parser().parse_args(argv)
    if chosen.tiny:
        chosen.size, chosen.device, chosen.precision = "tiny", "cpu", "fp32"
        chosen.lengths, chosen.rounds = "334,512", 2
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    about = machine() | {
        "size": chosen.size,
        "weights": "random",
        "device": chosen.device,
        "precision": chosen.precision,
        "load before": load_average(),
        "also running": chosen.also_running,
    }
    lines: list[Line] = []
    begun_s = time.monotonic()
    for line in _measured(chosen):
        lines.append(line)
        about["load after"] = load_average()
        about["took"] = f"{time.monotonic() - begun_s:.0f} s"
        print(f"{about['took']:>6}  {line.what}: {line.measured}", file=sys.stderr, flush=True)
        _write(chosen.out, about, lines)  # each time: who cuts a long run short keeps what it has
    print(_page(about, lines))
    return 1 if any(line.verdict == "missed" for line in lines) else 0


def _write(path: str | None, about: dict[str, str], lines: list[Line]) -> None:
    if path is None:
        return
    out = Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    content = {"about": about, "lines": [asdict(line) for line in lines]}
    out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    out.with_suffix(".md").write_text(_page(about, lines), "utf-8")


def _measured(chosen: argparse.Namespace) -> Iterator[Line]:
    device, size = torch.device(chosen.device), SIZES[chosen.size]
    model = random_model(size, device, chosen.precision)
    if device.type == "cuda":
        weights = torch.cuda.memory_allocated(device) / 1e9
        yield Line("memory of the weights", "-", f"{weights:.1f} GB", "-")
    rate = peak_flops(device, model.dtype)
    yield Line("rate of products", "-", f"{rate / 1e12:.3f} TFLOP/s", "-")
    if chosen.precision == "fp8" and (fast := peak_fp8_flops(device)):
        rate = fast
        yield Line("rate of products in FP8", "-", f"{rate / 1e12:.3f} TFLOP/s", "-")
    naive = None if chosen.precision in ("int8", "fp8") else Naive(model)
    for length in (int(part) for part in chosen.lengths.split(",")):
        yield from _latency(chosen, model, size, naive, (length, rate))
    yield from _remembered(chosen, model, size, naive)
    for callers in (1, 8, 32):
        per_s = throughput(_reader(model, chosen), size, callers, 4 if chosen.tiny else 48)
        yield Line(f"{callers} callers at 334 tokens", "-", f"{per_s:.2f} questions a second", "-")
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) / 1e9
        yield Line("memory held at the end, the naive way's too", "-", f"{held:.1f} GB", "-")


def _latency(
    chosen: argparse.Namespace,
    model: Model,
    size: Size,
    naive: Naive | None,
    place: tuple[int, float],
) -> Iterator[Line]:
    """One question of that length: against the naive way, and against the floor of its products."""
    length, rate = place
    one = prompt(length - _QUESTION, _QUESTION, size.text.vocabulary)
    own, again = (_reader(model, chosen, prefix_cache_bytes=0) for _ in "ab")
    plain = _reader(model, chosen, prefix_cache_bytes=0, graphs=False)
    asks = {"own": own.logits, "again": again.logits, "plain": plain.logits}
    for ask in asks.values():
        ask([one])  # records what is recorded
    samples: dict[str, list[float]] = {name: [] for name in (*asks, "naive")}
    for i in range(chosen.rounds if length < _LONG else max(1, chosen.rounds // 3)):
        names = list(asks) if i % 2 else list(reversed(asks))
        for name in names:
            samples[name].append(took_ms(partial(asks[name], [one]), model.device))
        if naive is not None:
            samples["naive"].append(took_ms(lambda: naive.logits(one), model.device))
    ours = statistics.median(samples["own"])
    control = statistics.median(samples["again"]) / ours
    settled = abs(control - 1) <= _SETTLED
    yield Line(f"{length}: control", "1 ± 0.1", f"{control:.2f}", "met" if settled else "unclear")
    yield Line(
        f"{length}: one question", "-", f"{ours:.1f} ms, {length / ours * 1e3:.0f} tokens/s", "-"
    )
    if model.device.type == "cuda":
        ratio = statistics.median(samples["plain"]) / ours
        yield Line(f"{length}: without CUDA graphs", "-", f"{ratio:.2f} times as long", "-")
        taken = peak_bytes(lambda: plain.logits([one]), model.device) / 1e9
        yield Line(f"{length}: memory beside the weights", "-", f"{taken:.2f} GB", "-")
    if naive is not None:
        ratio = statistics.median(
            n / o for n, o in zip(samples["naive"], samples["own"], strict=True)
        )
        wanted = 2.5 if model.device.type == "cuda" and length == 334 else None
        yield _at_least(f"{length}: naive forward over ours", wanted, ratio, settled)
        counts = operations(lambda: plain.logits([one])), operations(lambda: naive.logits(one))
        yield Line(
            f"{length}: operations, ours and naive", "-", f"{counts[0]} and {counts[1]}", "-"
        )
    floor_ms = flops(size, length) / rate * 1e3
    goal = _FLOORS.get(chosen.precision, {}).get(length) if model.device.type == "cuda" else None
    yield _at_most(f"{length}: over the floor of its products", goal, ours / floor_ms, settled)


def _remembered(
    chosen: argparse.Namespace, model: Model, size: Size, naive: Naive | None
) -> Iterator[Line]:
    """Four questions about a long state: the first time, again, and each by itself."""
    state, asked = (300, 75) if chosen.tiny else (_STATE, _ASKED)
    four = [prompt(state, asked, size.text.vocabulary, seed) for seed in range(_QUESTIONS)]
    reader, cold = _reader(model, chosen), _reader(model, chosen, prefix_cache_bytes=0)
    warm_ms = median_ms(lambda: reader.logits(four), model.device, chosen.rounds)
    cold_ms = median_ms(lambda: cold.logits(four), model.device, chosen.rounds)
    said = f"{state} + {_QUESTIONS} × {asked} tokens"
    goal = None if chosen.tiny else 3.0
    yield _at_least(f"{said}: first time over again", goal, cold_ms / warm_ms, settled=True)
    if naive is not None:
        each_ms = sum(_took(naive, one, model.device) for one in four)
        yield Line(
            f"{said}: naive, each by itself, over the first time",
            "-",
            f"{each_ms / cold_ms:.2f}",
            "-",
        )


def _took(naive: Naive, one: Prompt, device: torch.device) -> float:
    return took_ms(lambda: naive.logits(one), device)


def _reader(model: Model, chosen: argparse.Namespace, **options: object) -> Reader:
    settings = ClefSettings(
        Path("random"),
        device=chosen.device,
        precision=chosen.precision,
        **options,  # type: ignore[arg-type]
    )
    return Reader(model, settings, Prefixes(settings.prefix_cache_bytes))


def _at_least(what: str, goal: float | None, found: float, settled: bool) -> Line:
    met = goal is None or found >= goal
    return _judged(what, "-" if goal is None else f"≥ {goal}", found, (met, settled))


def _at_most(what: str, goal: float | None, found: float, settled: bool) -> Line:
    met = goal is None or found <= goal
    return _judged(what, "-" if goal is None else f"≤ {goal}", found, (met, settled))


def _judged(what: str, wanted: str, found: float, state: tuple[bool, bool]) -> Line:
    met, settled = state
    verdict = "-" if wanted == "-" else ("met" if met else "missed") if settled else "unclear"
    return Line(what, wanted, f"{found:.2f}", verdict)


def _page(about: dict[str, str], lines: list[Line]) -> str:
    rows = [["what", "wanted", "measured", "verdict"], ["---"] * 4]
    rows += [[line.what, line.wanted, line.measured, line.verdict] for line in lines]
    table = [f"| {' | '.join(row)} |" for row in rows]
    notes = [f"- {name}: {value}" for name, value in about.items()]
    return "\n".join(["# Clef on random weights", "", *table, "", *notes, ""])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench clef", description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="mid")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("bf16", "fp32", "fp8", "int8"), default="fp32")
    parser.add_argument("--lengths", default="334,1000", help="tokens of one question's prompt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="on the CPU; 0 = torch's choice")
    parser.add_argument("--tiny", action="store_true", help="everything once, on the CPU")
    parser.add_argument("--out", help="JSON file; a page of the same name goes beside it")
    parser.add_argument("--also-running", default="not stated", help="what shared the machine")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
