"""`tiergate threshold translate`: a threshold in the words of another confidence formula."""

import argparse
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from rich.table import Table

from engines.contract import Json
from gateway.cli.grammar import OK, Commands, add_config, add_json
from gateway.cli.logged import moment, open_log
from gateway.cli.whole import print_whole
from gateway.config_file import ConfigError, configuration_path, load
from gateway.documents import json_tree
from gateway.labelled import read_text
from gateway.ledger.decisions import Period
from policies.binomial import Interval
from policies.calibration import probabilities
from policies.confidence import Formula
from policies.translate import Matched, matched, translated

_FORMULAS: tuple[Formula, ...] = get_args(Formula)
_MOST_OPTIONS = 255
_ROUNDING = 0.01
"""Probabilities may be written with few digits."""


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("threshold", help="move thresholds between confidence formulas")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    translate = actions.add_parser(
        "translate", help="what a threshold on one formula is on another, for choices"
    )
    translate.add_argument(
        "--from", dest="source", type=_threshold, required=True, metavar="FORMULA:VALUE"
    )
    translate.add_argument("--to", dest="target", choices=_FORMULAS, required=True)
    translate.add_argument(
        "--options",
        type=_options,
        default=range(2, 11),
        metavar="N|N..M",
        help="how many options the questions have; default: 2..10",
    )
    translate.add_argument(
        "--log",
        action="append",
        nargs="?",
        default=[],
        const=None,
        type=Path,
        metavar="FILE",
        help="match on answers: the ledger's, or JSON lines with probabilities or log_weights",
    )
    translate.add_argument(
        "--since", metavar="7d", default="30d", help="of the ledger's answers; default: 30d"
    )
    add_config(translate)
    add_json(translate)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print one line for each number of options."""
    source, value = chosen.source
    sizes: range = chosen.options
    answers = _answers(chosen, sizes)
    exact = {n: translated(value, source, chosen.target, n) for n in sizes}
    seen = {n: matched(answers[n], value, source, chosen.target) for n in sizes if answers.get(n)}
    if chosen.json:
        print(json.dumps([_line(n, one, seen.get(n), answers) for n, one in exact.items()]))
    else:
        _show(f"{source} ≥ {value:g} as {chosen.target}", exact, seen, answers)
    return OK


def _threshold(text: str) -> tuple[Formula, float]:
    name, _, value = text.partition(":")
    for formula in _FORMULAS:
        if name == formula and re.fullmatch(r"0?\.\d+|[01](\.\d*)?", value):
            found = float(value)
            if found <= 1.0:
                return formula, found
    raise argparse.ArgumentTypeError(
        f"'{text}' is not FORMULA:VALUE with one of {', '.join(_FORMULAS)} and a value in [0, 1]"
    )


def _options(text: str) -> range:
    found = re.fullmatch(r"(\d{1,3})(?:\.\.(\d{1,3}))?", text)
    if found:
        low, high = int(found[1]), int(found[2] or found[1])
        if 2 <= low <= high <= _MOST_OPTIONS:
            return range(low, high + 1)
    raise argparse.ArgumentTypeError(f"'{text}' is not N or N..M with 2 ≤ N ≤ M ≤ {_MOST_OPTIONS}")


def _answers(chosen: argparse.Namespace, sizes: range) -> dict[int, list[list[float]]]:
    """Number of options → probabilities of the answers that are to be matched.

    Raises:
        ConfigError: a line is no JSON object, there is no ledger, or no answer of these sizes.
        CannotStart: the ledger cannot be read.
    """
    found: dict[int, list[list[float]]] = {}
    for path in chosen.log:
        for shares in _in_ledger(chosen) if path is None else _in_file(path):
            if len(shares) in sizes:
                found.setdefault(len(shares), []).append(shares)
    if chosen.log and not found:
        names = ", ".join("the ledger" if path is None else str(path) for path in chosen.log)
        raise ConfigError(f"{names}: no answer with {sizes[0]} to {sizes[-1]} options")
    return found


def _in_ledger(chosen: argparse.Namespace) -> Iterator[list[float]]:
    """The probabilities of every choice that a cascade answered."""
    settings = load(configuration_path(chosen.config)).settings
    period = Period(moment(chosen.since, time.time()))
    with open_log(settings) as log:
        for one in log.decisions(period):
            for look in one.looks:
                if one.kind == "choice" and look.engine == one.engine:
                    yield list(look.probabilities)


def _in_file(path: Path) -> Iterator[list[float]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield _shares(line, f"{path}:{number}")


def _shares(line: str, place: str) -> list[float]:
    """The probabilities of one line; none where it speaks of something else."""
    try:
        said = json_tree(line)
    except ValueError as error:
        raise ConfigError(f"{place}: not valid JSON: {error}") from None
    if not isinstance(said, dict):
        raise ConfigError(f"{place}: an object with probabilities or log_weights is needed")
    if weights := _numbers(said, "log_weights", place):
        return probabilities(weights)
    shares = _numbers(said, "probabilities", place)
    if shares and not (min(shares) >= 0 and math.isclose(sum(shares), 1, abs_tol=_ROUNDING)):
        raise ConfigError(f"{place}: probabilities: they are from 0 to 1 and 1 together")
    return shares


def _numbers(said: Mapping[str, Json], key: str, place: str) -> list[float]:
    found = said.get(key) or []
    if not isinstance(found, list):
        raise ConfigError(f"{place}: {key}: a list is needed")
    numbers = [float(n) for n in found if isinstance(n, int | float) and not isinstance(n, bool)]
    if len(numbers) < len(found) or not all(map(math.isfinite, numbers)):
        raise ConfigError(f"{place}: {key}: a list of finite numbers is needed")
    return numbers


def _line(
    n: int, one: Interval, seen: Matched | None, answers: Mapping[int, Sequence[object]]
) -> dict[str, object]:
    said: dict[str, object] = {"options": n, "low": one.low, "high": one.high}
    if seen is not None:
        said |= {"answers": len(answers[n]), "threshold": seen.threshold}
        said |= {"kept": seen.kept, "kept_now": seen.kept_now, "alike": seen.alike}
    return said


def _show(
    title: str,
    exact: Mapping[int, Interval],
    seen: Mapping[int, Matched],
    answers: Mapping[int, Sequence[object]],
) -> None:
    table = Table("options", "keeps none below", "keeps all from", title=title)
    if seen:
        for heading in ("answers", "threshold", "kept", "kept now", "decided alike"):
            table.add_column(heading, justify="right")
    for n, one in exact.items():
        cells = [str(n), f"{one.low:.4f}", f"{one.high:.4f}"]
        if seen and (own := seen.get(n)) is None:
            cells += ["0", "–", "–", "–", "–"]
        elif seen and own is not None:
            cells += [str(len(answers[n])), f"{own.threshold:.4f}"]
            cells += [f"{own.kept:.1%}", f"{own.kept_now:.1%}", f"{own.alike:.1%}"]
        table.add_row(*cells)
    print_whole(table)
