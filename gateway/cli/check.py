"""`tiergate check`: is this configuration fit to serve, and where does each value come from?"""

import argparse
import json
from collections.abc import Iterator

from rich.table import Table

from gateway.cli.grammar import FINDING, OK, Commands, add_config, add_json
from gateway.cli.screen import screen
from gateway.cli.waiting import told_when_slow
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import Configuration, configuration_path, load
from gateway.wiring_engines import open_lanes
from gateway.wiring_plans import refuse_unfit

_SDK_TIMEOUT_S = 10.0
_SDK_KEEP_ALIVE_S = 30


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "check", help="check the configuration, load the engines, show every value and its origin"
    )
    add_config(command)
    add_json(command)
    command.add_argument("--no-load", action="store_true", help="do not load the engines")
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print values and findings; 1 when there are findings.

    Raises:
        ConfigError: a start would refuse the configuration, or a file that it names.
        CannotStart: an engine cannot be loaded.
    """
    configuration = load(configuration_path(chosen.config))
    refuse_unfit(configuration.settings)
    if not chosen.no_load:
        with told_when_slow() as told, open_lanes(configuration.settings, told):
            pass
    findings = list(found(configuration.settings))
    if chosen.json:
        values = [
            {"key": value.key, "value": value.shown, "origin": value.origin}
            for value in configuration.values()
        ]
        print(json.dumps({"values": values, "findings": findings}, ensure_ascii=False))
    else:
        _show(configuration, findings)
    return FINDING if findings else OK


def found(settings: Settings) -> Iterator[str]:
    """A sentence for each setting that works and will still surprise somebody."""
    server = settings.server
    if server.deadline_s >= _SDK_TIMEOUT_S:
        yield (
            f"server.deadline_s is {server.deadline_s:g}, but the official SDK gives up after "
            f"{_SDK_TIMEOUT_S:g} s and asks again: slow answers are computed three times"
        )
    if server.keep_alive_s <= _SDK_KEEP_ALIVE_S:
        yield (
            f"server.keep_alive_s is {server.keep_alive_s}, but the official SDK keeps idle "
            f"connections for {_SDK_KEEP_ALIVE_S} s: some requests will meet a closed one"
        )
    for name, section in settings.models.items():
        if any(settings.engines[engine].kind == "scripted" for engine in section.engines):
            yield f"models.{name} is answered by a scripted engine, which judges nothing"


def _show(configuration: Configuration, findings: list[str]) -> None:
    console = screen()
    table = Table("setting", "value", "origin")
    for value in configuration.values():
        table.add_row(value.key, value.shown, value.origin)
    print_whole(table)
    for finding in findings:
        console.print(f"finding: {finding}")
    if not findings:
        console.print("no findings")
