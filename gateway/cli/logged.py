"""What the commands that read the log of decisions have in common."""

import argparse
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from gateway.cli.ask import read_questions
from gateway.cli.grammar import add_config, add_json
from gateway.cli.http import encoded
from gateway.config import Settings
from gateway.config_file import ConfigError
from gateway.config_prices import engine_prices
from gateway.dialects import systemone
from gateway.engine_costs import EngineCosts
from gateway.errors import Refusal
from gateway.ledger.decisions import Period
from gateway.ledger.reports import DAY_S, UsageQuery
from gateway.ledger.sqlite_alarms import SqliteAlarms, reading
from gateway.ledger.sqlite_reports import SqliteReports
from gateway.ledger.store import StoreError
from gateway.wiring import new_services
from gateway.wiring_engines import CannotStart
from policies.cells import fingerprint

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0}


def add_log(command: argparse.ArgumentParser, since: str) -> None:
    """`--since`, `--model`, `--config` and `--json`."""
    command.add_argument(
        "--since", metavar="7d", default=since, help=f"7d, 12h or 2026-12-01 (default: {since})"
    )
    command.add_argument("--model", help="only decisions of this model")
    add_config(command)
    add_json(command)


def moment(said: str, now_s: float) -> float:
    """Unix time of `7d`, `12h`, `30m` ago, or of the beginning of a day (UTC).

    Raises:
        ConfigError: it is neither, or is still to come.
    """
    if ago := re.fullmatch(r"([1-9]\d{0,5})([dhm])", said):
        return now_s - int(ago[1]) * _UNITS[ago[2]]
    try:
        begun_s = datetime.strptime(said, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(f"'{said}' is no time; write it like 7d, 12h or 2026-12-01") from None
    if begun_s > now_s:
        raise ConfigError(f"{said} is still to come (in UTC), so nothing is known since then")
    return begun_s


def logged_model(settings: Settings, log: SqliteAlarms, named: str | None) -> str | None:
    """The name under which decisions of a model are logged, of the model itself or of an alias.

    Raises:
        ConfigError: no such model is configured, and none is in the log.
    """
    if named is None:
        return None
    for name, section in settings.models.items():
        if named == name or named in section.aliases:
            return name
    if any(True for _ in log.decisions(Period(model=named, latest=1))):
        return named
    there = ", ".join(settings.models)
    raise ConfigError(f"there is no model '{named}', nor a decision of it; there are: {there}")


@contextmanager
def open_log(settings: Settings) -> Iterator[SqliteAlarms]:
    """The configured ledger's decisions, to be read only.

    Raises:
        ConfigError: no ledger is configured.
        CannotStart: it cannot be read.
    """
    if not settings.ledger.path:
        raise ConfigError("there is no ledger: ledger.path is empty, so nothing is remembered")
    try:
        with reading(settings.ledger.path) as log:
            yield log
    except StoreError as error:
        raise CannotStart(f"ledger.path: {settings.ledger.path}: {error}") from error


def engine_costs(settings: Settings, since_s: float) -> EngineCosts:
    """The configured prices, and the engines' pace as the ledger has it since then.

    Raises:
        CannotStart: the ledger cannot be read.
    """
    first, last = int(since_s // DAY_S), int(time.time() // DAY_S) + 1
    try:
        rows = SqliteReports(settings.ledger.path).usage(
            UsageQuery(min(first, last - 1), last, ("engine",))
        )
    except StoreError as error:
        raise CannotStart(f"ledger.path: {settings.ledger.path}: {error}") from error
    pace = {row.dimensions[0]: row.busy_us / row.tokens for row in rows if row.tokens}
    return EngineCosts(engine_prices(settings.prices), pace)


def names_of(settings: Settings, path: str | None) -> Mapping[str, str]:
    """Fingerprint → question id, from a file of questions; empty for `None`.

    Raises:
        ConfigError: the file cannot be read or holds something else.
    """
    if path is None:
        return {}
    asked = encoded({"state": "", "questions": read_questions(path)})
    try:
        _, inquiry = systemone.decode(asked, None, new_services(settings).ask)
    except Refusal as error:
        raise ConfigError(f"{path}: {error}") from None
    return {fingerprint(question): name for name, question in inquiry.questions.items()}
