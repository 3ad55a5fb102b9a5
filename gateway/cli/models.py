"""`tiergate models`: the names that clients may ask for."""

import argparse
import json
import sys
from typing import Any

from rich.table import Table

from gateway.cli.grammar import ENVIRONMENT, OK, USAGE, Commands, add_config, add_json, add_url
from gateway.cli.http import exchange, refusal_of
from gateway.cli.waiting import told_when_slow
from gateway.cli.whole import print_whole
from gateway.config_file import configuration_path, load
from gateway.wiring import cards
from gateway.wiring_engines import open_lanes


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("models", help="list the models and their aliases")
    add_config(command)
    add_url(command)
    add_json(command)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the list; 2 when a gateway at `--url` refuses it, 4 when it cannot give it."""
    if chosen.url:
        status, answer = exchange(chosen.url, "/v1/models", chosen.key_env)
        if status != 200:
            print(f"tiergate: {refusal_of(answer)}", file=sys.stderr)
            return USAGE if status < 500 else ENVIRONMENT
        listed = answer["models"]
    else:
        listed = _here(chosen.config)
    if chosen.json:
        print(json.dumps({"models": listed}, ensure_ascii=False))
        return OK
    table = Table("name", "description", "released")
    for one in listed:
        table.add_row(one["name"], one["description"], one["release_date"])
    print_whole(table)
    return OK


def _here(config: str | None) -> list[dict[str, Any]]:
    settings = load(configuration_path(config)).settings
    with told_when_slow() as told, open_lanes(settings, told) as lanes:
        facts = {name: lane.engine.facts for name, lane in lanes.items()}
        return [
            {"name": card.name, "description": card.description, "release_date": card.release_date}
            for card in cards(settings, facts)
        ]
