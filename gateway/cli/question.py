"""`tiergate question check`: does an engine answer a question the same however it is asked?"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import Progress
from rich.table import Table

from engines.contract import EngineError, Inquiry, Noul, Text
from gateway.cli.ask import read_questions, read_state
from gateway.cli.grammar import (
    ENVIRONMENT,
    FINDING,
    OK,
    USAGE,
    Commands,
    add_config,
    add_json,
    positive,
)
from gateway.cli.http import encoded
from gateway.cli.screen import screen
from gateway.cli.waiting import told_when_slow
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.dialects import systemone
from gateway.documents import json_tree
from gateway.errors import Refusal
from gateway.probing import Probe, Verdict, probed
from gateway.text_file import lines_in
from gateway.wiring import new_services, only_model
from gateway.wiring_engines import open_lanes
from policies.cells import fingerprint


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("question", help="try questions before thresholds are tuned")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser(
        "check", help="reorder, rename, reverse and surround questions; 1 when answers change"
    )
    check.add_argument("questions", metavar="FILE", help="JSON: question id → question")
    check.add_argument("-m", "--model", help="whose engines are tried (default: default_model)")
    check.add_argument(
        "-s", "--state", action="append", default=[], metavar="TEXT", help="a state; repeatable"
    )
    check.add_argument(
        "-f", "--file", action="append", default=[], metavar="FILE", help="a state: JSON or text"
    )
    check.add_argument(
        "--states", metavar="FILE", help="many: JSON lines, each an object with a `state`"
    )
    check.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="most of --states (default: 50)"
    )
    check.add_argument(
        "--twin",
        action="append",
        default=[],
        metavar="ID=ID",
        help="these yes/no questions of the file are opposites (default: made up in English)",
    )
    add_config(check)
    add_json(check)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print how each engine stood each test; 1 when one of them did not."""
    whole = load(configuration_path(chosen.config)).settings
    names = [n for name, one in whole.models.items() for n in (name, *one.aliases)]
    if chosen.model is not None and chosen.model not in names:
        raise ConfigError(f"there is no model '{chosen.model}'; there are: {', '.join(names)}")
    settings = only_model(whole, chosen.model)
    try:
        probe = _probe(chosen, settings)
        verdicts = _verdicts(settings, chosen.model, probe)
    except Refusal as error:
        print(f"tiergate: {chosen.questions}: {error}", file=sys.stderr)
        return USAGE
    except EngineError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    if chosen.json:
        marks = {name: fingerprint(question) for name, question in probe.questions.items()}
        shown = [_shown(one) | {"fingerprint": marks[one.question]} for one in verdicts]
        print(json.dumps(shown, ensure_ascii=False))
    else:
        _show(verdicts)
    return FINDING if any(one.faults for one in verdicts) else OK


def _probe(chosen: argparse.Namespace, settings: Settings) -> Probe:
    states: list[Any] = [*chosen.state, *(read_state(path) for path in chosen.file)]
    if chosen.states is not None:
        states += _states(chosen.states, chosen.limit)
    limits = new_services(settings).ask
    asked = read_questions(chosen.questions)
    _, inquiry = systemone.decode(encoded({"state": "", "questions": asked}), None, limits)
    for state in states:  # refused here rather than by an engine
        systemone.decode(encoded({"state": state, "questions": asked}), None, limits)
    return Probe(inquiry.questions, states, _twins(chosen.twin, inquiry))


def _states(path: str, limit: int) -> list[Text]:
    found: list[Text] = []
    try:
        for number, line in enumerate(lines_in(Path(path)), 1):
            if len(found) >= limit:
                break
            if line.strip():
                found.append(_state(line, f"{path}:{number}"))
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    if not found:
        raise ConfigError(f"{path}: there are no states in it")
    return found


def _state(line: str, where: str) -> Text:
    try:
        row = json_tree(line)
    except ValueError as error:
        raise ConfigError(f"{where}: not valid JSON: {error}") from None
    state = row.get("state") if isinstance(row, dict) else None
    if not isinstance(state, str | dict | list):
        raise ConfigError(f"{where}: an object with a 'state' is needed in each line")
    return state


def _twins(pairs: Sequence[str], inquiry: Inquiry) -> dict[str, str]:
    twins: dict[str, str] = {}
    for pair in pairs:
        one, equals, other = pair.partition("=")
        if not equals:
            raise ConfigError(f"--twin {pair}: two questions are written as ID=ID")
        for name in (one, other):
            if not isinstance(inquiry.questions.get(name), Noul):
                raise ConfigError(f"--twin {pair}: there is no yes/no question '{name}'")
            if name in twins:
                raise ConfigError(f"--twin {pair}: '{name}' has an opposite already")
        if inquiry.questions[one] == inquiry.questions[other]:
            raise ConfigError(f"--twin {pair}: a question is not its own opposite; name another")
        twins |= {one: other, other: one}
    return twins


def _verdicts(settings: Settings, model: str | None, probe: Probe) -> list[Verdict]:
    with told_when_slow() as told, open_lanes(settings, told) as lanes:
        readers = [lanes[name] for name in settings.engines]
        with Progress(console=screen(errors=True), transient=True) as progress:
            task = progress.add_task("asking", total=None)

            def shown(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return asyncio.run(probed(readers, probe, shown))


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {
        "engine": verdict.engine,
        "question": verdict.question,
        "findings": verdict.faults,
        "unread": dict(verdict.unread),
        "tests": {
            one.test: {
                "asked": one.asked,
                "flips": one.flips,
                "largest_change": round(one.change, 6),
                "findings": list(one.faults),
                **({} if one.bias is None else {"bias": round(one.bias, 6), "place": one.place}),
            }
            for one in verdict.tests
        },
    }


def _show(verdicts: Sequence[Verdict]) -> None:
    """What was measured as a table, what was found as sentences."""
    table = Table(box=None)
    for heading in ("question", "engine", "test", "asked", "flips", "change", "bias"):
        table.add_column(heading, overflow="fold")
    for one in verdicts:
        for row in one.tests:
            bias = "" if row.bias is None else f"{row.bias:.3f}"
            counts = (str(row.asked), str(row.flips), f"{row.change:.3f}")
            table.add_row(one.question, one.engine, row.test, *counts, bias)
        for reason, count in one.unread.items():
            table.add_row(one.question, one.engine, reason, str(count), "unread", "", "")
    console = screen()
    print_whole(table)
    for one in verdicts:
        for fault in one.faults:
            console.print(f"{one.question}, {one.engine}: {fault}", highlight=False)
    if not any(one.faults for one in verdicts):
        console.print("no findings")
