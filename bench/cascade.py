"""Cascades of real engines on labelled rows: accuracy against cost, and what a promise is worth.

    python -m bench cascade --data DIR                     starter → fitted, few labels → starter
    python -m bench cascade --data DIR --docs              and writes results, plots and tables
    python -m bench cascade --redraw                       plots and tables of the written results
    python -m bench cascade --data DIR --config FILE --model NAME --sets A,B
                                                           the first and last tier of a model

DIR holds `SET.train.jsonl`, `SET.test.jsonl` and `questions.json`, as described in
docs/benchmarks.md. Nothing is fitted, calibrated, certified or chosen on a test row.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench.cascade_engines import configured, few_of, starter_and_fitted
from bench.cascade_findings import Trained, alone, findings, trained
from bench.cascade_readings import Told, read_by, rows_of
from bench.cascade_tables import card_with, markdown
from bench.machine import load_average, machine
from engines.contract import Engine, label_count
from engines.starter.engine import StarterEngine
from gateway.fitting.training import Fitted, Terms
from gateway.labelled import Row
from policies.calibration import Calibration

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results/cascade.json"
CARD = ROOT / "docs/engines/fitted.md"
TO_FITTED = ("banking77", "clinc150", "snips", "sms_spam", "stsb")
FROM_FEW = ("banking77", "clinc150", "snips")
ALONE = ("snli_noul", "scitail", "qnli", "snli_choice")
"""Whose questions differ from row to row, or which no linear head reads: no large engine here."""
CALIBRATE_ON, CERTIFY_ON = 300, 1000
ROWS_ALONE = 800

Measured = Callable[[], dict[str, Any]]


def main(argv: Sequence[str]) -> int:
    """0 once everything is measured."""
    parser = argparse.ArgumentParser(prog="python -m bench cascade", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of labelled rows")
    parser.add_argument("--cache", type=Path, help="folder for vectors of states")
    parser.add_argument("--sets", default="", help="A,B; default: those named in the module")
    parser.add_argument("--config", help="a configuration; needs --model")
    parser.add_argument("--model", help="whose first and last tier are measured")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results there")
    parser.add_argument("--resume", action="store_true", help="keep the sets that are there")
    parser.add_argument("--docs", action="store_true", help="write results, plots, tables")
    parser.add_argument("--redraw", action="store_true", help="from the results as written")
    asked = parser.parse_args(argv)
    if asked.redraw:
        _draw(json.loads(RESULTS.read_text(encoding="utf-8")))
        return 0
    if asked.data is None:
        parser.error("--data is needed")
    target = RESULTS if asked.docs else asked.json
    found = _before(target) if asked.resume else {}
    with _bar() as bar:
        for title, name, measured in _wanted(asked, bar):
            if name not in found.setdefault(title, {}):
                found[title][name] = measured()
                _write(target, found)
    if target is None:
        print(markdown(found))
    elif asked.docs:
        _draw(found)
    return 0


def _before(target: Path | None) -> dict[str, Any]:
    if target is None or not target.exists():
        return {}
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


def _write(target: Path | None, found: dict[str, Any]) -> None:
    """The results so far, with when and on what."""
    found["on"] = time.strftime("%Y-%m-%d", time.gmtime())
    found["machine"], found["load_average"] = machine(), load_average()
    if target is not None:
        target.write_text(json.dumps(found) + "\n", encoding="utf-8")
        target.with_suffix(".md").write_text(markdown(found), encoding="utf-8")


def _draw(found: dict[str, Any]) -> None:
    from bench.cascade_plots import draw

    RESULTS.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    CARD.write_text(card_with(CARD.read_text(encoding="utf-8"), found), encoding="utf-8")
    draw(found, ROOT / "docs/images")


def _wanted(asked: argparse.Namespace, bar: "_Bar") -> Iterator[tuple[str, str, Measured]]:
    """(title, set, what measures it) of everything that was asked for."""
    chosen = [name for name in asked.sets.split(",") if name]
    if asked.config:
        title = f"{asked.model}: first tier → last tier"
        for name in chosen:
            yield title, name, partial(_configured, asked, name, bar)
        return
    for title, names, measure in (
        ("starter → fitted", TO_FITTED, _to_fitted),
        ("fitted to few labels → starter", FROM_FEW, _from_few),
        ("starter alone", ALONE, _alone),
    ):
        for name in names:
            if not chosen or name in chosen:
                yield title, name, partial(measure, asked, name, bar)


def _to_fitted(asked: argparse.Namespace, name: str, bar: "_Bar") -> dict[str, Any]:
    rows = rows_of(asked.data, name, "train")
    with starter_and_fitted(
        rows, asked.cache, bar(f"{name}: fitting"), Terms(hold_out=0.0)
    ) as opened:
        starter, head, about = opened
        known = _known(starter, rows, bar(f"{name}: calibrating"))
        test = rows_of(asked.data, name, "test")
        (small, large), dropped = read_by([starter, head], test, bar(f"{name}: testing"))
    return findings(small, large, known) | _about(dropped, rows, about) | {"kind": about.head.kind}


def _from_few(asked: argparse.Namespace, name: str, bar: "_Bar") -> dict[str, Any]:
    every = rows_of(asked.data, name, "train")
    (question,) = every[0].questions.values()
    rows = few_of(every, label_count(question))
    terms = Terms(risk=0.1, delta=0.1)
    with starter_and_fitted(rows, asked.cache, bar(f"{name}: fitting few"), terms) as opened:
        starter, head, about = opened
        known = _own_promises(about)
        test = rows_of(asked.data, name, "test")
        (small, large), dropped = read_by([head, starter], test, bar(f"{name}: testing few"))
    return findings(small, large, known) | _about(dropped, rows, about) | {"kind": about.head.kind}


def _alone(asked: argparse.Namespace, name: str, bar: "_Bar") -> dict[str, Any]:
    starter = StarterEngine()
    known = _known(starter, rows_of(asked.data, name, "train"), bar(f"{name}: calibrating"))
    test = rows_of(asked.data, name, "test")[:ROWS_ALONE]
    (read,), dropped = read_by([starter], test, bar(f"{name}: testing"))
    starter.close()
    found = alone(read.calibrated(Calibration(known.temperature)), known)
    return {"rows": len(read.labels), "dropped": dropped, "small": found}


def _configured(asked: argparse.Namespace, name: str, bar: "_Bar") -> dict[str, Any]:
    with configured(asked.config, asked.model) as (small, large):
        known = _known(small, rows_of(asked.data, name, "train"), bar(f"{name}: calibrating"))
        test = rows_of(asked.data, name, "test")
        read, dropped = read_by([small, large], test, bar(f"{name}: testing"))
    return findings(read[0], read[1], known) | {"dropped": dropped}


def _known(small: Engine[Any], rows: Sequence[Row], told: Told) -> Trained:
    """Temperature and promises of the small engine, from train rows in a drawn order."""
    some = random.Random(1).sample(list(rows), min(len(rows), CALIBRATE_ON + CERTIFY_ON))
    (read,), _ = read_by([small], some, told)
    return trained(read, min(CALIBRATE_ON, len(read.labels) // 3))


def _own_promises(about: Fitted) -> Trained:
    """A head calibrates itself by cross-validation, and certifies itself on what it kept back."""
    certificate = about.evidence.certificate
    promises = {} if certificate is None else {0.1: certificate}
    return Trained(1.0, about.evidence.crossed_likelihoods, promises)


def _about(dropped: int, rows: Sequence[Row], about: Fitted) -> dict[str, Any]:
    return {"dropped": dropped, "train_rows": len(rows), "fitted_to": about.evidence.trained_on}


class _Bar:
    """One line of progress for each thing that is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, what: str) -> Told:
        task = self._progress.add_task(what, total=None)
        return lambda done, total: self._progress.update(task, completed=done, total=total)


@contextmanager
def _bar() -> Iterator[_Bar]:
    with Progress(console=Console(stderr=True)) as progress:
        yield _Bar(progress)
