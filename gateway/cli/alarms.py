"""`tiergate alarms`: what needs a person; `tiergate alarms clear`: it has been seen to."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from rich.padding import Padding

from gateway.cli.drift import alarm_shown, date
from gateway.cli.grammar import ALARM, OK, USAGE, Commands, add_config, add_json
from gateway.cli.logged import open_log
from gateway.cli.screen import screen
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.ledger.decisions import Alarm
from gateway.ledger.store import StoreError
from gateway.wiring_ledger import NoLedger, open_store


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "alarms", help="list or clear what was found while watching; 3 while an alarm holds"
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    clear = actions.add_parser("clear", help="end alarms; demoted answers are kept again")
    clear.add_argument("number", nargs="*", type=int, help="as `tiergate alarms` shows them")
    clear.add_argument("--all", action="store_true", help="every alarm that holds")
    command.add_argument("--cleared", action="store_true", help="show cleared ones too")
    add_config(command)
    add_json(command)
    add_config(clear, default=argparse.SUPPRESS)  # what stands before the action counts too
    add_json(clear, default=argparse.SUPPRESS)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print or clear; 3 while an alarm holds."""
    settings = load(configuration_path(chosen.config)).settings
    if chosen.action == "clear":
        return _clear(chosen, settings)
    with open_log(settings) as log:
        found = log.alarms(cleared=chosen.cleared)
    if chosen.json:
        print(json.dumps([alarm_shown(one) for one in found], ensure_ascii=False))
    else:
        _show(found)
    return ALARM if any(one.cleared_s is None for one in found) else OK


def _show(found: Sequence[Alarm]) -> None:
    """Two lines or more for each alarm: what it is about, and its sentence."""
    console = screen()
    for one in found:
        cleared = "" if one.cleared_s is None else f", cleared {date(one.cleared_s)}"
        about = f"{one.kind} of {one.engine}: {one.what}"
        console.print(f"{one.alarm_id}: {about}, since {date(one.at_s)}{cleared}")
        console.print(Padding(one.message, (0, 0, 0, 4)))
    if not found:
        console.print("no alarm holds")


def _clear(chosen: argparse.Namespace, settings: Settings) -> int:
    """End what was named; 2 for a number that names nothing."""
    if bool(chosen.number) == chosen.all:
        raise ConfigError("name the alarms to clear by number, or say --all")
    with open_log(settings):  # a ledger that is not there is not made for this
        pass
    try:
        with closing(open_store(settings)) as store, store.transaction():
            holding = [one.alarm_id for one in store.alarms()]
            wanted = holding if chosen.all else chosen.number
            missing = sorted(set(wanted) - set(holding))
            found = [] if missing else [store.clear_alarm(one, time.time()) for one in wanted]
    except StoreError as error:
        raise NoLedger(f"ledger.path: {error}") from error
    if missing:
        print(f"tiergate: no alarm {missing[0]} holds; see tiergate alarms", file=sys.stderr)
        return USAGE
    cleared = [one for one in found if one is not None]
    if chosen.json:
        print(json.dumps([alarm_shown(one) for one in cleared], ensure_ascii=False))
    else:
        for one in cleared:
            print(f"cleared alarm {one.alarm_id}: {one.message}")
        if not cleared:
            print("no alarm holds")
    return OK
