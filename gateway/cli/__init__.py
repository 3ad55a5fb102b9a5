"""The command line: `tiergate COMMAND`, one module a command.

Exit codes: 0 fine, 1 something was found, 2 usage or configuration, 3 an alarm, 4 environment;
130 interrupted, 141 nobody reads the output.
"""

import argparse
import io
import os
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
from gateway.cli.grammar import ENVIRONMENT, INTERRUPTED, UNREAD, USAGE
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
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that it lacks ends no command
        sys.stdout.reconfigure(errors="backslashreplace")
    chosen = parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        _flush()
    except ConfigError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return USAGE
    except (CannotStart, NoLedger, Unreachable) as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    except KeyboardInterrupt:
        print("tiergate: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has enough
        _drop_output()
        return UNREAD
    except OSError as error:  # a full disk, a folder that went away
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"tiergate: {place}{error.strerror or error}", file=sys.stderr)
        _drop_output()
        return ENVIRONMENT
    return code


def _flush() -> None:
    """Raises: OSError: the output cannot be written."""
    if sys.stdout is not None:  # as it is where the caller has closed it
        sys.stdout.flush()


def _drop_output() -> None:
    """Let go of what cannot be written; it would be tried again at the end of the process."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
