"""`tiergate audit`: did asking the better engine help, and what did each fix cost?"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich.table import Table

from gateway.auditing import Audited, By, Kept, audited
from gateway.cli.grammar import FINDING, OK, Commands
from gateway.cli.logged import add_log, engine_costs, logged_model, moment, names_of, open_log
from gateway.cli.screen import screen
from gateway.config_file import configuration_path, load
from gateway.ledger.decisions import Period
from policies.benefit import Benefit, sentence
from policies.binomial import clopper_pearson
from policies.pricing import NANOS

_WENT_UP = ("answers", "changed", "fixed", "broken", "same", "p", "USD a fix")
_KEPT = ("answers", "wrong", "disagreed")


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "audit", help="what escalating fixed and broke, and what a fix cost; 1 where it harms"
    )
    command.add_argument("--by", choices=get_args(By), default="question")
    command.add_argument(
        "--questions", metavar="FILE", help="JSON: question id → question, to show names"
    )
    add_log(command, "30d")
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what escalating did; 1 when it harms some question."""
    settings = load(configuration_path(chosen.config)).settings
    names = names_of(settings, chosen.questions)
    since_s = moment(chosen.since, time.time())
    with open_log(settings) as log:
        costs = engine_costs(settings, since_s)
        model = logged_model(settings, log, chosen.model)
        decisions = log.decisions(Period(since_s, model=model))
        found = audited(decisions, costs, chosen.by)
    if chosen.json:
        print(json.dumps([_shown(one, names) for one in found], ensure_ascii=False))
    else:
        _show(found, names)
    return FINDING if any(one.escalated.verdict == "harms" for one in found) else OK


def _shown(one: Audited, names: Mapping[str, str]) -> dict[str, Any]:
    up, kept = one.escalated, one.kept
    return {
        "what": one.name,
        "name": names.get(one.name),
        "escalated": up.escalated,
        "changed": up.changed,
        "known": up.known,
        "fixed": up.fixed,
        "broken": up.broken,
        "both_right": up.both_right,
        "both_wrong": up.both_wrong,
        "p_value": up.p_value if up.known else None,
        "verdict": up.verdict,
        "cost": None if up.unpriced else up.nanos / NANOS,
        "cost_per_fix": None if up.nanos_per_fix is None else up.nanos_per_fix / NANOS,
        "unread": one.unread,
        "kept": {
            "answers": kept.kept,
            "told": kept.told,
            "wrong": kept.wrong,
            "wrong_interval": _interval(kept.wrong, kept.told),
            "second_opinions": kept.second,
            "disagreed": kept.disagreed,
            "disagreed_interval": _interval(kept.disagreed, kept.second),
        },
        "says": sentence(_quoted(one.name, names), up) if up.escalated else None,
    }


def _interval(hits: int, trials: int) -> list[float] | None:
    if not trials:
        return None
    found = clopper_pearson(hits, trials)
    return [found.low, found.high]


def _quoted(name: str, names: Mapping[str, str]) -> str:
    return f"`{names.get(name, name)}`"


def _show(found: Sequence[Audited], names: Mapping[str, str]) -> None:
    console = screen()
    up = [one for one in found if one.escalated.escalated]
    kept = [one for one in found if one.kept.kept]
    if up:
        rows = [(names.get(one.name, one.name), *_up(one.escalated)) for one in up]
        console.print(_table(("went up", *_WENT_UP), rows), "")
    if kept:
        rows = [(names.get(one.name, one.name), *_kept(one.kept)) for one in kept]
        console.print(_table(("kept", *_KEPT), rows), "")
    for one in found:
        if one.escalated.escalated:
            said = sentence(_quoted(one.name, names), one.escalated)
            console.print(said, highlight=False)
        if one.unread:
            console.print(
                f"{_quoted(one.name, names)}: {one.unread} went up unread, as too long or of a "
                "kind that the first engine is kept from; there is nothing to compare.",
                highlight=False,
            )
    if not found:
        console.print("no decisions of a model with several engines in that time")


def _table(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """Numbers stay whole on a narrow terminal; the name gives way."""
    table = Table(box=None, pad_edge=False)
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _up(up: Benefit) -> tuple[str, ...]:
    price = "" if up.nanos_per_fix is None else f"{up.nanos_per_fix / NANOS:.2g}"
    proof = f"{up.p_value:.2g}" if up.known else ""
    counts = (up.escalated, up.changed, up.fixed, up.broken, up.unchanged)
    return (*map(str, counts), proof, price)


def _kept(kept: Kept) -> tuple[str, ...]:
    wrong = f"{kept.wrong} of {kept.told}" if kept.told else ""
    disagreed = f"{kept.disagreed} of {kept.second}" if kept.second else ""
    return str(kept.kept), wrong, disagreed
