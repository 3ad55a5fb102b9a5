"""`tiergate calibrate`: labels to temperatures, floors with a promise, and a report."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engines.contract import EngineError
from gateway.atomic import make_folder, refuse_target, write_together
from gateway.calibrating.certifying import Terms
from gateway.calibrating.curves import Cost
from gateway.calibrating.findings import Findings
from gateway.calibrating.report import page
from gateway.calibrating.results import Read
from gateway.calibrating.running import Rung, Task, findings, read_all
from gateway.calibrating.splitting import Split, given, split, without_repeats
from gateway.calibrating.summary import summary
from gateway.cli.calibrate_log import found_in_log, model_of
from gateway.cli.calibrate_print import show
from gateway.cli.grammar import ENVIRONMENT, FINDING, OK, Commands, add_config, add_json, share
from gateway.cli.screen import screen
from gateway.cli.waiting import told_when_slow
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.config_prices import engine_prices
from gateway.labelled import load_rows
from gateway.policy_file import Mode, calibration_text, policy_text
from gateway.wiring_engines import open_lanes
from gateway.wiring_plans import gate_of
from policies.pricing import NANOS

_NAMES = ("calibration.json", "policy.toml", "report.html", "report.json")
_READINGS = "readings"
_GOES_ON = "what was read is kept; the same command goes on from there"


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "calibrate", help="fit temperatures and choose floors with a promise, from labels"
    )
    command.add_argument("labels", nargs="*", type=Path, metavar="LABELS", help="JSONL or CSV")
    command.add_argument(
        "--log", action="store_true", help="agreement of two engines, from the log of decisions"
    )
    command.add_argument(
        "--since", default="30d", metavar="7d", help="with --log: from when on; default: 30d"
    )
    command.add_argument(
        "--certify",
        action="append",
        default=[],
        type=Path,
        metavar="LABELS",
        help="test floors on this file; default: two thirds of LABELS, by a hash of the state",
    )
    whose = command.add_mutually_exclusive_group()
    whose.add_argument("-m", "--model", help="whose engines; default: the default model")
    whose.add_argument("-e", "--engine", help="one engine instead of a model's")
    command.add_argument("--against", metavar="ENGINE", help="the engine above --engine")
    command.add_argument("--risk", type=share, default=0.05, help="default: 0.05")
    command.add_argument("--delta", type=share, default=0.1, help="default: 0.1")
    command.add_argument("--per", choices=("cell", "question"), default="cell")
    command.add_argument(
        "--separate", action="store_true", help="each floor has all of delta, instead of a share"
    )
    command.add_argument(
        "--agreement",
        action="store_true",
        help="labels are not needed: floors above which the last engine says the same",
    )
    command.add_argument("--seed", type=int, default=0, help="of the split; default: 0")
    command.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="default: here")
    add_config(command)
    add_json(command)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Write the files and show what was found; 1 when nothing can be promised."""
    settings = load(configuration_path(chosen.config)).settings
    if bool(chosen.labels) == chosen.log:
        raise ConfigError("give files with labelled questions, or --log")
    try:
        found = _from_log(chosen, settings) if chosen.log else _from_rows(chosen, settings)
    except EngineError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        print(_GOES_ON, file=sys.stderr)
        return ENVIRONMENT
    except KeyboardInterrupt:
        print(_GOES_ON, file=sys.stderr)
        raise
    files = _written(found, chosen.out)
    if chosen.json:
        print(json.dumps(summary(found, files), ensure_ascii=False))
    else:
        show(found, files)
    return OK if found.promised else FINDING


def _from_log(chosen: argparse.Namespace, settings: Settings) -> Findings:
    if chosen.engine or chosen.against or chosen.certify:
        raise ConfigError("with --log the engines are those of --model, and all rows are its own")
    _refuse_target(chosen.out)
    _, *names = model_of(settings, chosen.model)
    return found_in_log(chosen, settings, _terms(chosen), _cost(settings, names), _now())


def _from_rows(chosen: argparse.Namespace, settings: Settings) -> Findings:
    names = _engines(chosen, settings)
    alone = len(names) == 1
    if chosen.agreement and alone:
        raise ConfigError(
            "--agreement compares engines, and there is only one; name a model with tiers, or "
            "--engine and --against"
        )
    _refuse_target(chosen.out)
    mode: Mode = "agreement" if chosen.agreement else "labels"
    rows, (cost, unit) = _split(chosen), _cost(settings, names)
    task = Task(rows, _terms(chosen), mode, alone, cost, unit, _now())
    return _found(settings, names, task, chosen.out)


def _terms(chosen: argparse.Namespace) -> Terms:
    return Terms(chosen.risk, chosen.delta, chosen.per, joint=not chosen.separate)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _engines(chosen: argparse.Namespace, settings: Settings) -> tuple[str, ...]:
    """Names of the engines, the cheapest first."""
    if chosen.against is not None and chosen.engine is None:
        raise ConfigError("--against names the engine above --engine; give that too")
    if chosen.engine is not None:
        if chosen.engine == chosen.against:
            raise ConfigError(f"--against {chosen.against}: an engine is not above itself")
        names = tuple(filter(None, (chosen.engine, chosen.against)))
        for name in names:
            if name not in settings.engines:
                there = ", ".join(settings.engines) or "none"
                raise ConfigError(f"there is no engine '{name}'; there are: {there}")
        return names
    wanted = settings.default_model if chosen.model is None else chosen.model
    for name, section in settings.models.items():
        if wanted == name or wanted in section.aliases:
            return section.engines
    raise ConfigError(f"there is no model '{wanted}'; there are: {', '.join(settings.models)}")


def _split(chosen: argparse.Namespace) -> Split:
    rows = load_rows(chosen.labels, labels_needed=False)
    if chosen.certify:
        found = given(rows, load_rows(chosen.certify, labels_needed=False))
    else:
        found = split(rows, share=1 / 3, seed=chosen.seed)
    if not chosen.agreement and not any(row.labels for row in found.certify):
        raise ConfigError(
            "no row has a label; give labels, or compare engines with --agreement"
            if not any(row.labels for row in without_repeats(rows)[0])
            else "no row to certify has a label; give more labels"
        )
    return found


def _cost(settings: Settings, names: Sequence[str]) -> tuple[Cost, str]:
    """Money where every engine has a price, else tokens."""
    prices, now_s = engine_prices(settings.prices), time.time()
    if prices.unpriced(names, now_s):
        return (lambda _, read: float(read.tokens)), "tokens a question"

    def money(engine: str, read: Read) -> float:
        tariff = prices.tariff(engine, now_s)
        cost = 0 if tariff is None else tariff.cost(read.tokens, round(read.seconds * 1e6))
        return cost / NANOS * 1e6

    return money, f"{prices.currency} a million questions"


def _found(settings: Settings, names: Sequence[str], task: Task, out: Path) -> Findings:
    """Reads what is not known yet, then fits and certifies."""
    engines = {name: settings.engines[name] for name in names}
    only = settings.model_copy(update={"engines": engines})
    with told_when_slow() as told, open_lanes(only, told) as lanes:
        ladder = []
        for name, lane in lanes.items():
            facts = lane.engine.facts
            ladder.append(Rung(lane, facts, gate_of(settings.cascade, name, facts)))
        each = len(task.split.calibrate) + len(task.split.certify)
        with _progress(names, each) as progress:
            reads = asyncio.run(read_all(ladder, task.split, out / _READINGS, progress))
    return findings(ladder, reads, task)


@contextmanager
def _progress(names: Sequence[str], each: int) -> Iterator[Callable[[str, int], None]]:
    """A bar per engine on standard error."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen(errors=True)) as progress:
        tasks = {name: progress.add_task(f"reading with {name}", total=each) for name in names}

        def told(name: str, rows: int) -> None:
            progress.advance(tasks[name], rows)

        yield told


def _refuse_target(out: Path) -> None:
    """Make the folder and see that it takes files, before anything is read for it."""
    try:
        make_folder(out)
        for name in _NAMES:
            refuse_target(out / name)
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _written(found: Findings, out: Path) -> dict[str, str]:
    """File name → path of what was written."""
    files = {name: str(out / name) for name in _NAMES}
    try:
        write_together(
            {
                out / "calibration.json": calibration_text(found.calibration),
                out / "policy.toml": policy_text(found.policy),
                out / "report.html": page(found),
                out / "report.json": json.dumps(summary(found, files), indent=1) + "\n",
            }
        )
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return files
