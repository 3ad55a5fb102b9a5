"""The starter engine on labelled questions: fits its scales on train rows, reports on test rows.

    python -m bench starter fit --data DIR       writes engines/starter/weights/calibration.json
    python -m bench starter report --data DIR    writes docs/engines/starter.json and the card
    python -m bench starter latency --data DIR   measures the latency in them again

DIR holds `SET.train.jsonl`, `SET.test.jsonl` and `questions.json`; docs/engines/starter.md says
where the rows come from. Sets whose file is absent are an error, never left out in silence.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import starter_fit
from bench.starter_scores import auroc, majority, rank_correlation
from engines.contract import (
    Choice,
    Inquiry,
    Kind,
    Noul,
    Question,
    Reading,
    Score,
    Unreadable,
    kind_of,
)
from engines.starter import scales as stored
from engines.starter.engine import StarterEngine
from policies.calibration import expected_calibration_error, probabilities

ROOT = Path(__file__).resolve().parents[1]
CALIBRATION = ROOT / "engines/starter/weights/calibration.json"
REPORT = ROOT / "docs/engines/starter.json"
CARD = ROOT / "docs/engines/starter.md"

FITTED_ON: dict[Kind, tuple[str, ...]] = {
    "choice": ("banking77", "clinc150", "snips", "snli_choice", "mnli_choice"),
    "noul": ("snli_noul", "mnli_noul", "boolq", "qnli", "scitail", "sms_spam"),
    "score": ("stsb",),
}
ROWS_PER_SET = 600
REPORTED = (
    *("banking77", "clinc150", "snips", "snli_choice", "mnli_choice", "snli_noul", "mnli_noul"),
    *("boolq", "qnli", "scitail", "sms_spam", "hatecheck", "stsb", "sys1bench_canary"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled inquiry."""

    inquiry: Inquiry
    right: Mapping[str, int]
    """Question id → index of the right label."""


@dataclass(slots=True)
class Readings:
    """What the engine made of the questions of one kind in one set."""

    log_weights: list[Sequence[float]] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    """CPU time of each question, its texts of options remembered from before or not."""
    refused: int = 0


def question(wire: Mapping[str, Any]) -> Question:
    """The question a System One question object asks."""
    asked, criteria = wire.get("instructions"), wire.get("criteria")
    match wire["type"]:
        case "choice":
            return Choice(wire["criteria"], asked)
        case "score":
            return Score(wire["criteria"], asked)
        case "noul":
            meanings = criteria or {}
            return Noul(asked, meanings.get("true"), meanings.get("false"))
    raise ValueError(f"no such type: {wire['type']}")


def right_label(asked: Question, label: str | int | bool) -> int:
    """Index of a row's label: an option's name, a level's index, or true and false."""
    match asked:
        case Choice():
            return list(asked.options).index(str(label))
        case Noul():
            return 0 if label is True else 1
        case Score():
            return int(label)


def cases(folder: Path, name: str, split: str) -> Iterator[Case]:
    """Every row of the set's split, in the file's order."""
    shared = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    with (folder / f"{name}.{split}.jsonl").open(encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            wire = row["questions"]
            wire = shared[wire.removeprefix("@")] if isinstance(wire, str) else wire
            asked = {key: question(one) for key, one in wire.items()}
            right = {key: right_label(asked[key], row["labels"][key]) for key in asked}
            yield Case(Inquiry(row["state"], asked), right)


def readings(engine: StarterEngine, rows: Sequence[Case]) -> dict[Kind, Readings]:
    """The engine's readings by kind; a question it refuses is counted and left out."""
    found: dict[Kind, Readings] = {}
    for case in rows:
        for key, asked in case.inquiry.questions.items():
            kind = found.setdefault(kind_of(asked), Readings())
            began_s = time.process_time()
            reading = _one(engine, Inquiry(case.inquiry.state, {key: asked}))
            if reading is None:
                kind.refused += 1
                continue
            kind.cpu_ms.append((time.process_time() - began_s) * 1000)
            kind.log_weights.append(reading.log_weights)
            kind.right.append(case.right[key])
    return found


def _one(engine: StarterEngine, inquiry: Inquiry) -> Reading | None:
    try:
        (piece,) = engine.prepare(inquiry)
    except Unreadable:
        return None
    return next(iter(engine.read([piece])[0].values()))


def fit(folder: Path) -> dict[str, Any]:
    """The content of calibration.json: one scale per kind, and what it was fitted on."""
    engine = StarterEngine()
    scales = stored.load().of
    kinds: dict[str, Any] = {}
    for kind, names in FITTED_ON.items():
        sets: dict[str, starter_fit.Cosines] = {}
        for name in names:
            rows = list(cases(folder, name, "train"))
            spread = rows[:: max(1, len(rows) // ROWS_PER_SET)][:ROWS_PER_SET]
            read = readings(engine, spread)[kind]
            temperature = scales[kind].temperature
            cosines = [[w * temperature for w in row] for row in read.log_weights]
            sets[name] = starter_fit.Cosines(cosines, read.right)
            print(f"{kind} {name}: {len(read.right)} rows", flush=True)
        scale, why = starter_fit.yes_no(sets) if kind == "noul" else starter_fit.ranked(sets)
        kinds[kind] = {
            "scale": scale,
            "fitted_on": {name: len(part.right) for name, part in sets.items()},
            **why,
        }
    return {
        "how": (
            "least negative log-likelihood on rows of the train splits, as many of each set; "
            "see bench/starter_fit.py"
        ),
        "on": time.strftime("%Y-%m-%d", time.gmtime()),
        "kinds": kinds,
    }


def report(folder: Path) -> dict[str, Any]:
    """The content of docs/engines/starter.json: scores per set and kind on every test row."""
    engine = StarterEngine()
    sets: dict[str, Any] = {}
    for name in REPORTED:
        for kind, read in readings(engine, list(cases(folder, name, "test"))).items():
            title = f"{name} ({kind})"
            sets[title] = _scores(kind, read)
            print(title, sets[title], flush=True)
    return {
        "model": engine.facts.model,
        "digest": engine.facts.digest,
        "on": time.strftime("%Y-%m-%d", time.gmtime()),
        "latency": latency(folder),
        "sets": sets,
    }


def latency(folder: Path) -> dict[str, float]:
    """CPU ms of a BANKING77 question with remembered options, and the tokens of its state.

    100 rows in 30 rounds; of each row the quickest read, which is the one least disturbed.
    """
    engine = StarterEngine()
    rows = list(cases(folder, "banking77", "test"))[:100]
    rounds = [readings(engine, rows)["choice"].cpu_ms for _ in range(30)]
    quickest = [min(tries) for tries in zip(*rounds, strict=True)]
    # A row of its own for the state, one of three tokens for the option.
    alone = [engine.prepare(Inquiry(row.inquiry.state, {"q": Choice({"a": None})})) for row in rows]
    tokens = [pieces[0].tokens - 3 for pieces in alone]
    engine.close()
    return {
        "median_ms": round(statistics.median(quickest), 1),
        "largest_ms": round(max(quickest), 1),
        "median_tokens": statistics.median(tokens),
        "largest_tokens": max(tokens),
    }


def _scores(kind: Kind, read: Readings) -> dict[str, Any]:
    p = [probabilities(row) for row in read.log_weights]
    said = [max(range(len(row)), key=row.__getitem__) for row in p]
    hits = [one == right for one, right in zip(said, read.right, strict=True)]
    scores: dict[str, Any] = {
        "kind": kind,
        "n": len(hits),
        "refused": read.refused,
        "majority": round(majority(read.right), 3),
        "accuracy": round(statistics.fmean(hits), 3),
        "ece": round(expected_calibration_error([max(row) for row in p], hits), 3),
        "cpu_ms": round(statistics.median(read.cpu_ms), 1),
    }
    if kind == "noul":
        yes = [right == 0 for right in read.right]
        scores["auroc"] = round(auroc([row[0] for row in p], yes), 3)
        scores["p_yes"] = [round(min(row[0] for row in p), 3), round(max(row[0] for row in p), 3)]
    if kind == "score":
        means = [math.fsum(i * q for i, q in enumerate(row)) for row in p]
        scores["rho"] = round(rank_correlation(means, read.right), 3)
    return scores


def table(sets: Mapping[str, Mapping[str, Any]]) -> str:
    """The scores as a Markdown table, one set and kind a line, three decimals."""
    lines = [
        "| set (kind) | n | refused | majority | accuracy | AUROC | rho | ECE | CPU ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for title, one in sets.items():
        auc, rho = (f"{one[key]:.3f}" if key in one else "" for key in ("auroc", "rho"))
        lines.append(
            f"| {title} | {one['n']} | {one['refused']} | {one['majority']:.3f} "
            f"| {one['accuracy']:.3f} | {auc} | {rho} | {one['ece']:.3f} | {one['cpu_ms']:.1f} |"
        )
    return "\n".join(lines)


def card_with(card: str, found: Mapping[str, Any]) -> str:
    """The card with what stands between its two pairs of marks replaced by what was found."""
    took = found["latency"]
    sentence = (
        f"A BANKING77 question (77 options, remembered) takes {took['median_ms']} ms of CPU at a "
        f"state of {took['median_tokens']:g} tokens,\nthe median, and {took['largest_ms']} ms at "
        f"most (of 100 questions, up to {took['largest_tokens']} tokens)."
    )
    return _between("numbers", table(found["sets"]), _between("latency", sentence, card))


def _between(mark: str, text: str, card: str) -> str:
    before, rest = card.split(f"<!-- {mark} -->\n", 1)
    _, after = rest.split(f"<!-- /{mark} -->", 1)
    return f"{before}<!-- {mark} -->\n{text}\n<!-- /{mark} -->{after}"


def main(argv: list[str]) -> int:
    """0 once the file is written."""
    parser = argparse.ArgumentParser(prog="python -m bench starter", description=__doc__)
    parser.add_argument("what", choices=["fit", "report", "latency"])
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled rows")
    asked = parser.parse_args(argv)
    if asked.what == "fit":
        CALIBRATION.write_text(json.dumps(fit(asked.data), indent=2) + "\n", encoding="utf-8")
        return 0
    if asked.what == "report":
        found = report(asked.data)
    else:
        found = json.loads(REPORT.read_text(encoding="utf-8")) | {"latency": latency(asked.data)}
    REPORT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    CARD.write_text(card_with(CARD.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 0
