"""What the commands' grammars have in common."""

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, FINDING, USAGE, ALARM, ENVIRONMENT = 0, 1, 2, 3, 4
"""Exit codes: fine, something was found, usage or configuration, an alarm, environment."""


def add_config(command: argparse.ArgumentParser) -> None:
    """`--config`, for commands that read a configuration."""
    command.add_argument(
        "--config", metavar="FILE", help="default: $TIERGATE_CONFIG, else ./config.toml if there"
    )


def add_url(command: argparse.ArgumentParser) -> None:
    """`--url` and `--key-env`, for commands that can talk to a running gateway."""
    command.add_argument("--url", help="ask a running gateway instead, e.g. http://127.0.0.1:8080")
    command.add_argument(
        "--key-env", metavar="VARIABLE", help="environment variable with the bearer key for --url"
    )


def add_json(command: argparse.ArgumentParser) -> None:
    """`--json`, for output that a program reads."""
    command.add_argument("--json", action="store_true", help="print JSON for programs")
