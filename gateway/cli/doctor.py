"""`tiergate doctor`: is this machine fit for this configuration, and what would surprise later?"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from engines.contract import Facts
from gateway.cli.check import found as surprises
from gateway.cli.grammar import ENVIRONMENT, FINDING, OK, Commands, add_config, add_json
from gateway.cli.waiting import told_when_slow
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import configuration_path, load
from gateway.doctor import examined
from gateway.doctor_found import Found, finding
from gateway.doctor_machine import this_machine
from gateway.wiring_engines import CannotStart, open_lanes
from gateway.wiring_plans import promises, refuse_unfit

_CADDYFILES = (Path("Caddyfile"), Path("/etc/caddy/Caddyfile"))


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "doctor", help="look at the machine, the ledger, the front and the weights; change nothing"
    )
    add_config(command)
    add_json(command)
    command.add_argument("--no-load", action="store_true", help="do not load the engines")
    command.add_argument(
        "--caddyfile", type=Path, metavar="FILE", help="default: ./Caddyfile, /etc/caddy/Caddyfile"
    )
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what is fine and what is not; 1 when something is not, 4 when an engine does not load.

    Raises:
        ConfigError: the configuration cannot be used at all.
    """
    path = configuration_path(chosen.config)
    settings = load(path).settings
    refuse_unfit(settings)
    facts, why_not = ({}, None) if chosen.no_load else _loaded(settings)
    promised = promises(settings.cascade, facts)
    caddyfile = chosen.caddyfile or next((one for one in _CADDYFILES if one.is_file()), None)
    listed = list(examined(settings, this_machine(path), facts, promised, caddyfile))
    listed += [Found("settings", "finding", sentence) for sentence in surprises(settings)]
    if why_not is not None:
        listed.append(finding("weights", why_not))
    findings = [one for one in listed if one.level == "finding"]
    if chosen.json:
        print(json.dumps({"checks": [asdict(one) for one in listed], "findings": len(findings)}))
    else:
        _show(listed)
    if why_not is not None:
        return ENVIRONMENT
    return FINDING if findings else OK


def _loaded(settings: Settings) -> tuple[dict[str, Facts], str | None]:
    """Engine → what it is; none when one of them does not load, and why it does not."""
    try:
        with told_when_slow() as told, open_lanes(settings, told) as lanes:
            return {name: lane.engine.facts for name, lane in lanes.items()}, None
    except CannotStart as error:
        return {}, str(error)


def _show(listed: Sequence[Found]) -> None:
    table = Table("check", "result", "what was found")
    for one in sorted(listed, key=lambda one: one.level, reverse=True):
        table.add_row(one.check, "ok" if one.level == "fine" else "finding", one.message)
    print_whole(table)
