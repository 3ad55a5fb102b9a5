"""`tiergate usage`: what was used and what it cost; `tiergate usage compare`: and elsewhere?"""

import argparse
import sys
import time
from collections.abc import Mapping

from gateway.cli.grammar import ENVIRONMENT, OK, USAGE, Commands, add_config, add_url
from gateway.cli.http import Unreachable, exchange
from gateway.cli.usage_print import FORMATS, print_comparison, print_report
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.config_prices import CURRENCY
from gateway.focus import BY as FOCUS_BY
from gateway.ledger.sqlite_reports import SqliteReports
from gateway.ledger.store import StoreError
from gateway.usage import PATH, Report, report, today_utc, usage_query
from gateway.usage_compare import compare

_COMPARE_FORMATS = ("table", "json")


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("usage", help="show what was used and what it cost")
    command.add_argument(
        "what",
        nargs="?",
        choices=["compare"],
        help="compare: what this traffic would have cost on hosted models",
    )
    command.add_argument("--by", default="", metavar="A,B", help="key, model, engine, day, reason")
    command.add_argument("--since", metavar="DAY", help="2026-12-01, or 30d (default)")
    command.add_argument("--until", metavar="DAY", help="last day (default: today); days are UTC")
    command.add_argument("--format", choices=FORMATS, default="table")
    add_config(command)
    add_url(command)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the report; 2 for what cannot be asked, 4 when there is no ledger to read."""
    settings = load(configuration_path(chosen.config)).settings
    asked = {"since": chosen.since, "until": chosen.until}
    parameters = {name: value for name, value in asked.items() if value is not None}

    def fetch(parameters: Mapping[str, str]) -> Report:
        if chosen.url:
            return _there(chosen.url, chosen.key_env, parameters)
        return _here(settings, parameters)

    try:
        if chosen.what == "compare":
            if chosen.by or chosen.format not in _COMPARE_FORMATS:
                raise ValueError("usage compare has no --by, and is a table or json")
            found = compare(fetch, parameters, settings.prices, time.time())
            print_comparison(found, chosen.format)
            return OK
        if chosen.format == "focus":
            if chosen.by:
                raise ValueError("focus has a breakdown of its own; leave out --by")
            parameters["by"] = ",".join(FOCUS_BY)
        elif chosen.by:
            parameters["by"] = chosen.by
        print_report(fetch(parameters), chosen.format)
    except ValueError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return USAGE
    except StoreError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    return OK


def _here(settings: Settings, parameters: Mapping[str, str]) -> Report:
    query = usage_query(parameters, today_utc(time.time()))
    if not settings.ledger.path:
        raise ConfigError("there is no ledger: ledger.path is empty, so nothing is counted")
    return report(SqliteReports(settings.ledger.path), query, CURRENCY)


def _there(url: str, key_env: str | None, parameters: Mapping[str, str]) -> Report:
    from urllib.parse import urlencode

    usage_query(parameters, today_utc(time.time()))  # what is wrong with it is said here already
    asked = "&".join([urlencode(parameters)] if parameters else [])
    status, answer = exchange(url, f"{PATH}?{asked}", key_env)
    if status == 200:
        found: Report = answer
        return found
    detail = answer.get("detail") if isinstance(answer, dict) else None
    message = detail.get("message") if isinstance(detail, dict) else None
    if status < 500:
        raise ValueError(f"{url} answered {status}: {message}")
    raise Unreachable(f"{url} answered {status}: {message}")
