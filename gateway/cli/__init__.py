"""The command line: `tiergate COMMAND`, one module a command.

Exit codes: 0 fine, 1 something was found, 2 usage or configuration, 3 an alarm, 4 environment.
"""

import argparse
import sys
from collections.abc import Sequence

from gateway import __version__
from gateway.cli import (
    alarms,
    ask,
    audit,
    calibrate,
    check,
    doctor,
    drift,
    engine,
    fit,
    keys,
    models,
    policy,
    question,
    reload,
    replay,
    serve,
    threshold,
    usage,
)
from gateway.cli.grammar import ENVIRONMENT, USAGE
from gateway.cli.http import Unreachable
from gateway.config_file import ConfigError
from gateway.wiring_engines import CannotStart
from gateway.wiring_ledger import NoLedger

_COMMANDS = (
    *(serve, ask, check, models, keys, usage, engine, fit),
    *(question, calibrate, policy, threshold, audit, replay, drift, alarms),
    *(reload, doctor),
)


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(
        prog="tiergate", description="A self-hosted gateway for typed decisions."
    )
    top.add_argument("--version", action="version", version=f"tiergate {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    chosen = parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
    except ConfigError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return USAGE
    except (CannotStart, NoLedger, Unreachable) as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    except KeyboardInterrupt:
        return 130
    return code
