"""`python -m bench laya`: this engine against the reference package, on random weights.

CPU time, interleaved, in ratios to peers of the same round; a second fp32 is the control.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.laya_checkpoint import SHAPES, random_checkpoint
from bench.laya_contenders import contenders, inquiry, open_engine
from bench.laya_measure import (
    CONTROL,
    MEMORY,
    Costs,
    drift,
    flops,
    int8_effect,
    many_questions,
    measured,
    memory_kib,
)
from bench.machine import load_average, machine
from engines.laya.checkpoint import load

_OWN, _INT8 = "tiergate fp32", "tiergate int8"
_EAGER, _AGENT = "laya (torch eager)", "laya ONNXAgent"
_SETTLED = 0.05
"""How far the control may be from 1 before a run counts for nothing."""


@dataclass(frozen=True, slots=True)
class Line:
    """One goal and what was measured."""

    goal: str
    wanted: str
    measured: str
    verdict: str
    """`met`, `missed`, `unclear` or `-`."""


def main(argv: list[str]) -> int:
    """Measure, print, write; 1 when a goal is missed."""
    chosen = _parser().parse_args(argv)
    folder = Path(chosen.folder)
    folder.mkdir(parents=True, exist_ok=True)
    before = load_average()
    path = random_checkpoint(folder, chosen.size)
    lengths = [int(length) for length in chosen.lengths.split(",")]
    lines, costs = _run(path, lengths, chosen)
    about = machine() | {
        "size": chosen.size,
        "weights": "random",
        "load before": before,
        "load after": load_average(),
        "also running": chosen.also_running,
    }
    page = _page(about, costs, lines)
    print(page)
    if chosen.out:
        out = Path(chosen.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "about": about,
            "goals": [asdict(line) for line in lines],
            "costs": asdict(costs),
        }
        out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        out.with_suffix(".md").write_text(page, "utf-8")
    return 1 if any(line.verdict == "missed" for line in lines) else 0


def _run(
    path: Path, lengths: Sequence[int], chosen: argparse.Namespace
) -> tuple[list[Line], Costs]:
    checkpoint = load(path)
    encoder = checkpoint.encoder
    if encoder is None:
        raise ValueError("the random checkpoint has no encoder")
    own = open_engine(path, "fp32")
    asks = {length: inquiry(own, length) for length in lengths}
    costs = measured(asks, contenders(path), encoder.hidden, chosen.rounds, _tell)
    work = {n: flops(encoder, checkpoint.head_layers, costs.tokens[n], 3) for n in lengths}
    lines = [line for length in lengths for line in _speed(costs, length, work[length])]
    coarse = open_engine(path, "int8")
    per_question = many_questions(coarse, 100, chosen.questions, 1)
    lines.append(_at_most(f"{chosen.questions} questions, each over one alone", 1.02, per_question))
    moved = drift(coarse, 100)
    lines.append(_at_most("int8: drift of a log-weight by company", 0.0, moved))
    worst, flips, count = int8_effect(path, lengths[:2], chosen.samples)
    lines.append(
        Line("int8 against fp32", "-", f"max |Δp| {worst:.4f}, {flips} of {count} flip", "-")
    )
    if not chosen.no_memory:
        lines += _memory(path)
    return lines, costs


def _speed(costs: Costs, length: int, work: float) -> Iterator[Line]:
    """The goals of one length."""
    control = costs.ratio(length, _OWN, CONTROL)[0]
    settled = abs(control - 1) <= _SETTLED
    yield Line(f"{length}: control", "1 ± 0.05", f"{control:.3f}", "met" if settled else "unclear")
    share = costs.of_gemm(length, _OWN, work)
    yield _at_least(
        f"{length}: fp32 share of GEMM", 0.82 if length <= 256 else 0.78, share, settled
    )
    gain = costs.ratio(length, _INT8, _OWN)
    yield _at_least(f"{length}: int8 times fp32", 1.6 if length <= 256 else 1.5, gain, settled)
    if _EAGER in costs.ms[length]:
        wanted = 2.2 if length <= 128 else 1.6
        gain = costs.ratio(length, _INT8, _EAGER)
        yield _at_least(f"{length}: int8 times torch eager", wanted, gain, settled)
        gain = costs.ratio(length, _OWN, _EAGER)
        yield _at_least(f"{length}: fp32 times torch eager", 1.0, gain, settled)
        gain = costs.ratio(length, _OWN, _AGENT)
        yield _at_least(f"{length}: fp32 times ONNXAgent", 1.0, gain, settled)


def _memory(path: Path) -> Iterator[Line]:
    found = {what: memory_kib(path, what) for what in MEMORY}
    serving = {what: one["anonymous"] + one["files"] for what, one in found.items()}
    for what, kib in serving.items():
        yield Line(f"memory: {what}", "-", f"{kib / 1024:.0f} MiB", "-")
    share = serving[_INT8] / serving[_EAGER]
    yield _at_most("memory: int8 over torch eager", 0.6, share)
    taken = found["import fp32"]["peak"] - found["import fp32"]["before"]
    size = (path / "tiergate-row-fp32/weights.bin").stat().st_size / 1024
    yield _at_most("memory: importing fp32 over the graph's size", 1.3, taken / size)


def _at_least(goal: str, least: float, found: tuple[float, float, float], settled: bool) -> Line:
    middle, low, high = found
    verdict = ("met" if middle >= least else "missed") if settled else "unclear"
    return Line(goal, f"≥ {least}", f"{middle:.2f} ({low:.2f} to {high:.2f})", verdict)


def _at_most(goal: str, most: float, found: float) -> Line:
    return Line(goal, f"≤ {most}", f"{found:.3g}", "met" if found <= most else "missed")


def _page(about: dict[str, str], costs: Costs, lines: Sequence[Line]) -> str:
    """The whole run as Markdown."""
    names = list(next(iter(costs.ms.values())))
    head = ["tokens", "GEMM GFLOP/s", *names]
    rows = [
        [
            str(costs.tokens[length]),
            f"{statistics.median(costs.gflops[length]):.0f}",
            *(f"{statistics.median(costs.ms[length][name]):.0f}" for name in names),
        ]
        for length in costs.ms
    ]
    goals = [[line.goal, line.wanted, line.measured, line.verdict] for line in lines]
    return "\n".join(
        [
            "# Laya: CPU milliseconds per request of one question, one thread, median",
            "",
            *_table(head, rows),
            "",
            *_table(["goal", "wanted", "measured", "verdict"], goals),
            "",
            *(f"- {name}: {value}" for name, value in about.items()),
            "",
        ]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench laya", description=__doc__)
    parser.add_argument("--size", choices=sorted(SHAPES), default="english")
    parser.add_argument("--lengths", default="64,128,256,512", help="tokens per row")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--questions", type=int, default=64, help="in the many-questions measure")
    parser.add_argument("--samples", type=int, default=12, help="inquiries for the effect of int8")
    parser.add_argument("--folder", default="build/checkpoints", help="for the random weights")
    parser.add_argument("--out", help="JSON file; a page of the same name goes beside it")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--also-running", default="not stated", help="what shared the machine")
    return parser
