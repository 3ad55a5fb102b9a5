"""`tiergate keys create | list | info | rotate | revoke | limits`: who may ask, and how much."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from gateway import issuing
from gateway.cli.grammar import OK, Commands, add_config, add_json
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.config_prices import engine_prices
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import NameTaken, NoSuchKey, StoreError
from gateway.wiring_ledger import NoLedger, open_store

_NONE = "none"

_ABOUT = {
    "rpm": ("requests a minute", "N"),
    "tpm": ("tokens a minute", "N"),
    "tokens_per_day": ("tokens a day", "N"),
    "tokens_per_month": ("tokens a month", "N"),
    "escalations_per_day": ("questions a day that may go up to a better engine", "N"),
    "escalations_per_month": ("the same a month", "N"),
    "usd_per_day": ("US dollars a day, e.g. 2.50", "USD"),
    "usd_per_month": ("US dollars a month", "USD"),
}
"""Limit → what its option says of itself, and what stands for its value."""
_UNSET = {"models": "all", "expires": "never", "revoked": "no"}
"""Field → how it is shown where there is nothing."""
_MOST_DIGITS = 20


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("keys", help="make, list, change and end API keys")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _action(actions, "create", "make a key; its text is shown once", _create)
    create.add_argument("name")
    create.add_argument("--expires", metavar="90d", help="how long it lasts: 90d, 24h, 30m")
    create.add_argument("--scopes", metavar="A,B", help="of decide, usage, metrics, admin")
    create.add_argument("--models", metavar="A,B", help="only these models; default: all")
    create.add_argument("--confidence", choices=issuing.FORMULAS, help="default: jev")
    _add_limits(create)
    _action(actions, "list", "every key", _list)
    for name, about, run in (
        ("info", "one key", _info),
        ("rotate", "a new secret; the old one works for another 24 hours", _rotate),
        ("revoke", "end a key for good, from its next request on", _revoke),
    ):
        _action(actions, name, about, run).add_argument("name", help="its name or id")
    limits = _action(actions, "limits", "change limits; the others stay", _limits)
    limits.add_argument("name", help="its name or id")
    _add_limits(limits)


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, about: str, run: Any
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=about, description=about)
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)
    return parser


def _add_limits(parser: argparse.ArgumentParser) -> None:
    for name in issuing.LIMITS:
        option, (about, metavar) = f"--{name.replace('_', '-')}", _ABOUT[name]
        parser.add_argument(option, metavar=metavar, help=f"{about}; '{_NONE}' = not limited")


def _create(chosen: argparse.Namespace) -> int:
    wish: dict[str, Any] = {"name": chosen.name, **_wished_limits(chosen)}
    for name in ("expires", "confidence"):
        if (value := getattr(chosen, name)) is not None:
            wish[name] = value
    for name in ("scopes", "models"):
        if (value := getattr(chosen, name)) is not None:
            wish[name] = [part.strip() for part in value.split(",")]
    settings = _settings(chosen)
    _refuse_unpriced(settings, wish)
    models = [n for name, one in settings.models.items() for n in (name, *one.aliases)]
    with _store(settings, making=True) as store:
        issued = issuing.create(store, wish, models, time.time())
        return _told(chosen, issued, store)


def _rotate(chosen: argparse.Namespace) -> int:
    with _store(_settings(chosen)) as store:
        return _told(chosen, issuing.rotate(store, chosen.name, time.time()), store)


def _told(chosen: argparse.Namespace, issued: issuing.Issued, store: SqliteStore) -> int:
    """The bearer text on standard output, alone, so that it can be piped; the rest beside it."""
    about = issuing.shown(issued.key, store.secrets(), time.time())
    if chosen.json:
        print(json.dumps({"key": issued.minted.text, **about}))
    else:
        print(issued.minted.text)
        print(f"{issued.key.name}: shown once, kept nowhere; store it now", file=sys.stderr)
    return OK


def _list(chosen: argparse.Namespace) -> int:
    with _store(_settings(chosen)) as store:
        secrets, now_s = store.secrets(), time.time()
        listed = [issuing.shown(key, secrets, now_s) for key in store.every_key()]
    if chosen.json:
        print(json.dumps({"keys": listed}))
        return OK
    table = Table(box=None, pad_edge=False)
    for heading in ("name, id, end", "state", "scopes", "models", "limits"):
        table.add_column(heading, no_wrap=heading in ("state", "scopes"))
    for one in listed:
        limits = [f"{name} {value}" for name, value in one["limits"].items() if value is not None]
        ends = [one["expires"]] if one["expires"] else []
        models = ["all"] if one["models"] is None else one["models"]
        about = [one["name"], one["id"], *ends]
        cells = (about, [one["state"]], one["scopes"], models, limits)
        table.add_row(*("\n".join(lines) for lines in cells))
    print_whole(table)
    return OK


def _info(chosen: argparse.Namespace) -> int:
    with _store(_settings(chosen)) as store:
        return _show(chosen, issuing.named(store, chosen.name).name, store)


def _revoke(chosen: argparse.Namespace) -> int:
    with _store(_settings(chosen)) as store:
        return _show(chosen, issuing.revoke(store, chosen.name, time.time()).name, store)


def _limits(chosen: argparse.Namespace) -> int:
    wish, settings = _wished_limits(chosen), _settings(chosen)
    _refuse_unpriced(settings, wish)
    with _store(settings) as store:
        with store.transaction():  # whoever changes another limit meanwhile is not undone
            name = issuing.set_limits(store, chosen.name, wish).name
        return _show(chosen, name, store)


def _show(chosen: argparse.Namespace, name: str, store: SqliteStore) -> int:
    one = issuing.shown(issuing.named(store, name), store.secrets(), time.time())
    if chosen.json:
        print(json.dumps(one))
        return OK
    table = Table("", "", show_header=False)
    for field, value in one.items():
        table.add_row(field, _UNSET.get(field, _NONE) if value is None else _cell(value))
    print_whole(table)
    return OK


def _cell(value: Any) -> str:
    """A field as lines of text."""
    match value:
        case dict():
            return "\n".join(f"{n} {v}" for n, v in value.items() if v is not None) or _NONE
        case list():
            return (
                "\n".join(
                    one
                    if isinstance(one, str)
                    else " ".join(f"{n} {v}" for n, v in one.items() if v)
                    for one in value
                )
                or _NONE
            )
        case _:
            return str(value)


def _wished_limits(chosen: argparse.Namespace) -> dict[str, Any]:
    """Limits that were named on the command line; `none` becomes `None`."""
    wish: dict[str, Any] = {}
    for name in issuing.LIMITS:
        value = getattr(chosen, name)
        if value is not None:
            counted = value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
            wish[name] = None if value == _NONE else int(value) if counted else value
    return wish


def _refuse_unpriced(settings: Settings, wish: dict[str, Any]) -> None:
    unpriced = engine_prices(settings.prices).unpriced(list(settings.engines), time.time())
    try:
        issuing.refuse_unpriced(wish, unpriced)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _settings(chosen: argparse.Namespace) -> Settings:
    return load(configuration_path(chosen.config)).settings


@contextmanager
def _store(settings: Settings, *, making: bool = False) -> Iterator[SqliteStore]:
    """The ledger; one that is not there is made by `create` alone, and that is told."""
    path = Path(settings.ledger.path)
    there = not settings.ledger.path or path.exists()
    if not there and not making:
        raise NoLedger(
            "ledger.path: there is no such file from here; `tiergate keys create` makes it"
        )
    store = open_store(settings)
    if not there:
        print(f"there was no ledger; it begins at {path.resolve()}", file=sys.stderr)
    try:
        yield store
    except (ValueError, NameTaken, NoSuchKey) as error:
        raise ConfigError(str(error)) from None
    except StoreError as error:
        raise NoLedger(f"ledger.path: {error}") from error
    finally:
        store.close()
