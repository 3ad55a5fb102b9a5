"""What the commands' grammars have in common."""

import argparse
import math
from collections.abc import Callable
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, FINDING, USAGE, ALARM, ENVIRONMENT = 0, 1, 2, 3, 4
"""Exit codes: fine, something was found, usage or configuration, an alarm, environment."""
INTERRUPTED, UNREAD = 130, 141
"""As shells have it of a process that SIGINT ended, or SIGPIPE."""


def add_config(command: argparse.ArgumentParser, default: str | None = None) -> None:
    """`--config`, for commands that read a configuration."""
    command.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="default: $TIERGATE_CONFIG, else ./config.toml if there",
    )


def add_url(command: argparse.ArgumentParser) -> None:
    """`--url` and `--key-env`, for commands that can talk to a running gateway."""
    command.add_argument("--url", help="ask a running gateway instead, e.g. http://127.0.0.1:8080")
    command.add_argument(
        "--key-env", metavar="VARIABLE", help="environment variable with the bearer key for --url"
    )


def add_json(command: argparse.ArgumentParser, default: bool | str = False) -> None:
    """`--json`, for output that a program reads."""
    command.add_argument(
        "--json", action="store_true", default=default, help="print JSON for programs"
    )


def probability(text: str) -> float:
    """A number in [0, 1]; for `type=`."""
    return _number(text, lambda one: 0.0 <= one <= 1.0, "a number from 0 to 1, as 0.8")


def share(text: str) -> float:
    """A number between 0 and 1, and neither of them; for `type=`."""
    return _number(text, lambda one: 0.0 < one < 1.0, "a number between 0 and 1, as 0.05")


def part_left_out(text: str) -> float:
    """A number in [0, 0.9]; for `type=`."""
    return _number(text, lambda one: 0.0 <= one <= 0.9, "a number from 0 to 0.9, as 0.3")


def positive(text: str) -> int:
    """A whole number from 1 on; for `type=`."""
    return int(_number(text, lambda one: one >= 1 and one.is_integer(), "a whole number from 1 on"))


def _number(text: str, fits: Callable[[float], bool], wanted: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and fits(found)):
        raise argparse.ArgumentTypeError(f"'{text}' is not {wanted}")
    return found
