"""The one final report: a chosen checkpoint on the test splits it never saw.

    python -m training.evaluate --data DIR --checkpoint best.pt --out DIR

Writes `report.json` beside this file and the graphs into `--out`. Shares and temperatures come
from the validation splits; nothing here is chosen by looking at a test split.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from training import encoder, figures, validate
from training.cosine import Cosine
from training.encoder import CHOICE_SCALE, CrossEncoder
from training.figures import Figures
from training.graph import Graph, export
from training.manifest import HELD_OUT
from training.metrics import auroc_interval
from training.reader import TOKENS_A_BATCH, Reads, Writer, logits
from training.sets import Example, Kind, asked, rows

PREFIX_TOKENS, OPTION_TOKENS = 256, 64
MOST_EXAMPLES, MOST_OPTIONS = 500, 15_000
"""A set is read up to so many examples, and so many options over all of them."""
INT8_EXAMPLES = 500
"""The int8 graph is compared with fp32 on so many examples of each set."""

Sets = Mapping[tuple[str, Kind], Sequence[Example]]
Lines = dict[tuple[str, Kind], list[Tensor]]


def reported(folder: Path) -> dict[tuple[str, Kind], list[Example]]:
    """The examples to report on, by set and kind."""
    found: dict[tuple[str, Kind], list[Example]] = {}
    kinds: tuple[Kind, ...] = ("noul", "choice", "score")
    for kind in kinds:
        for name in HELD_OUT[kind]:
            room = MOST_OPTIONS
            chosen = found.setdefault((name, kind), [])
            for row in rows(folder, name, "test"):
                fit = [example for example in asked(row) if example.kind == kind]
                room -= sum(len(example.options) for example in fit)
                if room >= 0 and len(chosen) + len(fit) <= MOST_EXAMPLES:
                    chosen += fit
    return found


def held_out(folder: Path) -> dict[tuple[str, Kind], list[Example]]:
    """The validation examples by set and kind."""
    held = validate.held_out(folder)
    return {(name, examples[0].kind): examples for name, examples in held.items()}


def cosines(cosine: Cosine, sets: Sets) -> Lines:
    """State against option text, a noul's options being "<question> yes" and "<question> no"."""
    found: Lines = {}
    for key, examples in sets.items():
        put = [_as_choice(example) for example in examples]
        found[key] = [term * CHOICE_SCALE for term in cosine.terms(put)]
    return found


def _as_choice(example: Example) -> Example:
    if example.kind != "noul":
        return replace(example, kind="choice")
    options = tuple(f"{example.instructions} {option}" for option in example.options)
    return replace(example, kind="choice", options=options)


def shares_of_cosine(model: CrossEncoder, cosine: Cosine, sets: Sets) -> Lines:
    """The additive term alone; a noul's is the state against the question itself."""
    return {
        key: [model.weighted(term, key[1]).detach() for term in cosine.terms(examples)]
        for key, examples in sets.items()
    }


def read(reads: Reads, writer: Writer, sets: Sets, tokens_a_batch: int) -> tuple[Lines, Figures]:
    """The MLP's logits by set and kind, and the CPU milliseconds a question by set."""
    found: Lines = {}
    spent_ms: Figures = {}
    for key, examples in sets.items():
        start_s = time.process_time()
        found[key] = logits(reads, writer, examples, tokens_a_batch)
        each_ms = (time.process_time() - start_s) * 1000 / len(examples)
        spent_ms["/".join(key)] = round(each_ms, 1)
    return found, spent_ms


def fused(mlp: Lines, near: Lines, shares: Mapping[str, float]) -> Lines:
    """The MLP's logits by the share of their kind, plus the cosine's of as many examples."""
    return {
        key: [line * shares[key[1]] + term for line, term in zip(lines, near[key], strict=False)]
        for key, lines in mlp.items()
    }


def heated(lines: Lines, held: Sets) -> dict[Kind, float]:
    """One temperature a kind, from the validation sets; a score has none and keeps 1."""
    heat: dict[Kind, float] = {"score": 1.0}
    kinds: tuple[Kind, ...] = ("noul", "choice")
    for kind in kinds:
        keys = [key for key in held if key[1] == kind]
        examples = [example for key in keys for example in held[key]]
        heat[kind] = figures.temperature_of(examples, [line for key in keys for line in lines[key]])
    return heat


def table(lines: Lines, sets: Sets, heat: Mapping[Kind, float]) -> dict[str, Figures]:
    """Figures by `set/kind`."""
    return {
        "/".join(key): figures.measured(key[1], examples, lines[key][: len(examples)], heat[key[1]])
        for key, examples in sets.items()
    }


def intervals(systems: Mapping[str, Lines], sets: Sets) -> dict[str, tuple[float, float]]:
    """95 % intervals of the mean noul AUROC, and of what fusing adds to the question's cosine."""
    judged = {
        name: [
            ([float(a - b) for a, b in lines[key]], [example.gold == 0 for example in examples])
            for key, examples in sets.items()
            if key[1] == "noul"
        ]
        for name, lines in systems.items()
    }
    found = {name: auroc_interval(scored) for name, scored in judged.items()}
    added = auroc_interval(judged["fused, full share"], judged["cosine of the question"])
    return {**found, "fused, full share less cosine of the question": added}


def report(folder: Path, checkpoint: Path, out: Path) -> dict[str, object]:
    """All figures by system and `set/kind`, the verdicts, and what they cost."""
    start_s = time.process_time()
    stored = torch.load(checkpoint, weights_only=True)
    model = CrossEncoder()
    model.load_state_dict(stored["model"])
    model.eval()
    tokenizer = encoder.tokenizer()
    cosine = Cosine(encoder.Encoder().load_base(), tokenizer)
    writer = Writer(tokenizer, PREFIX_TOKENS, OPTION_TOKENS)
    picked = stored["validation"]
    shares = {"noul": picked["noul_share"], "choice": picked["choice_share"], "score": 1.0}
    whole = dict.fromkeys(shares, 1.0)
    sets, held = reported(folder), {(f"held {n}", k): e for (n, k), e in held_out(folder).items()}
    few = {key: examples[:INT8_EXAMPLES] for key, examples in sets.items()}
    every: Sets = {**sets, **held}
    int8 = export(model, out)
    near = shares_of_cosine(model, cosine, every)
    exact, exact_ms = read(model, writer, every, TOKENS_A_BATCH)
    coarse, coarse_ms = read(Graph(int8), writer, few, 1)
    systems = {
        "cosine": cosines(cosine, every),
        "cosine of the question": near,
        "cross-encoder alone": exact,
        "fused, full share": fused(exact, near, whole),
        "fused, chosen share": fused(exact, near, shares),
    }
    heats = {name: heated(lines, held) for name, lines in systems.items()}
    tables = {name: table(lines, sets, heats[name]) for name, lines in systems.items()}
    heat = heats["fused, full share"]
    coarse_fused = fused(coarse, near, whole)
    pair = {
        "fp32": table(systems["fused, full share"], few, heat),
        "int8": table(coarse_fused, few, heat),
    }
    verdict_of_int8 = figures.verdict(pair["int8"], tables["cosine"])
    return {
        "checkpoint": {key: stored[key] for key in ("progress", "validation")},
        "shares": shares,
        "verdicts": {n: figures.verdict(t, tables["cosine"]) for n, t in tables.items()},
        "noul_auroc_95": intervals(systems, sets),
        "figures": tables,
        "int8": {
            "bytes": int8.stat().st_size,
            "fused, full share": pair,
            "verdict": verdict_of_int8,
        },
        "cpu_ms_a_question": {"fp32, batched": exact_ms, "int8, one at a time": coarse_ms},
        "report_cpu_s": round(time.process_time() - start_s),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    written = json.dumps(report(given.data, given.checkpoint, given.out), indent=1)
    Path(__file__).with_name("report.json").write_text(written + "\n", encoding="utf-8")
