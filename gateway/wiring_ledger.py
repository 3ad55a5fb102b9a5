"""Opens the ledger for a gateway: the store, its threads, the key ring, the meter."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from gateway.app import Services
from gateway.auth import KeyRing
from gateway.charging import Terms
from gateway.chores import chores
from gateway.config import Settings
from gateway.config_file import ConfigError
from gateway.config_prices import engine_prices
from gateway.config_server import is_loopback
from gateway.ledger.books import Books
from gateway.ledger.calendar import Calendar
from gateway.ledger.retention import keep_forgetting, keep_pruned
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Key, Keys, StoreError
from gateway.metering import Metering

_TIDY_EVERY_S = 1.0
_BREATH_S = 0.05
_DAY_S = 86_400.0


class NoLedger(Exception):
    """The ledger cannot be opened. The message says why."""


def static_keys(settings: Settings) -> dict[str, str]:
    """Name → bearer key of `[auth.keys]`."""
    return {name: key.get_secret_value() for name, key in settings.auth.keys.items()}


def key_ring(settings: Settings, source: Keys | None = None) -> KeyRing:
    """The keys of the configuration, and those of `source`. Raises: StoreError."""
    scrapers = {name: key.get_secret_value() for name, key in settings.auth.metrics_keys.items()}
    return KeyRing(static_keys(settings), source, scrapers=scrapers)


def open_store(settings: Settings) -> SqliteStore:
    """The configured store.

    Raises:
        ConfigError: no ledger is configured.
        NoLedger: it cannot be opened.
    """
    ledger = settings.ledger
    if not ledger.path:
        raise ConfigError('ledger.path is empty: set it, e.g. path = "ledger.db" under [ledger]')
    try:
        return SqliteStore(ledger.path, synchronous=ledger.synchronous)
    except StoreError as error:
        raise NoLedger(f"ledger.path: {error}") from error


@contextmanager
def open_books(settings: Settings, services: Services) -> Iterator[None]:
    """Give the services what the `[ledger]` section asks for; nothing for an empty path.

    Raises:
        ConfigError: the address is open to others but there is no key, or a key has a money
            budget and an engine has no price.
        NoLedger: the store cannot be opened.
    """
    ledger = settings.ledger
    if not ledger.path:
        yield
        return
    books = Books(lambda: open_store(settings), interval_s=ledger.interval_ms / 1000)
    try:
        services.ring = renewed_ring(settings, books)
        prices = engine_prices(settings.prices)
        terms = Terms(
            calendar=Calendar(ledger.timezone),
            prices=prices,
            price_version=prices.version,
            durable=ledger.durability == "group",
            lease_s=ledger.lease_s,
            longest_s=settings.server.deadline_s,
            text_bytes=ledger.text_bytes if ledger.store_text else 0,
        )
        services.metering = Metering(books.writer, services.rates, terms)
        services.books, services.calendar = books, terms.calendar
        services.unpriced = prices.unpriced(list(settings.engines), time.time())
        yield
    finally:
        if services.metering is not None:
            services.metering.close()
        services.metering = services.books = services.calendar = None
        books.close()


@asynccontextmanager
async def kept(
    services: Services, retention_days: int, decision_days: int = 30
) -> AsyncIterator[None]:
    """The ledger's housekeeping, as long as the block lasts."""
    books, metering = services.books, services.metering
    if books is None or metering is None:
        yield
        return
    pruned = keep_pruned(books.writer, retention_days * _DAY_S)
    forgotten = keep_forgetting(books.writer, decision_days * _DAY_S)
    async with chores(_tidied(books, metering), pruned, forgotten):
        yield


async def _tidied(books: Books, metering: Metering) -> None:
    more = False
    while True:
        await asyncio.sleep(_BREATH_S if more else _TIDY_EVERY_S)
        metering.retire_idle()
        more = await books.sweep(time.time())


def renewed_ring(settings: Settings, books: Books | None) -> KeyRing:
    """The keys of the configuration and of the ledger, if there is one.

    Raises:
        ConfigError: see `open_books`.
        NoLedger: the store cannot be read.
    """
    try:
        ring = key_ring(settings, None if books is None else books.source)
    except StoreError as error:
        raise NoLedger(f"ledger.path: {error}") from error
    _refuse_open_door(settings, ring)
    _refuse_unpriced(settings, ring.keys)
    return ring


def reprice(settings: Settings, services: Services) -> None:
    """From now on charge by the prices of these settings."""
    prices = engine_prices(settings.prices)
    if services.metering is not None:
        services.metering.reprice(prices)
        services.unpriced = prices.unpriced(list(settings.engines), time.time())


def _refuse_open_door(settings: Settings, ring: KeyRing) -> None:
    host = settings.server.host
    if ring.open and not is_loopback(host):
        raise ConfigError(
            f"server.host is '{host}', which others can reach, but there are no keys; "
            "make one with 'tiergate keys create NAME' or bind to 127.0.0.1"
        )


def _refuse_unpriced(settings: Settings, keys: list[Key]) -> None:
    prices, now_s = engine_prices(settings.prices), time.time()
    unpriced = prices.unpriced(list(settings.engines), now_s)
    for key in keys:
        money = (key.limits.nanos_per_day, key.limits.nanos_per_month)
        over = key.revoked_s is not None or (key.expires_s is not None and key.expires_s <= now_s)
        if unpriced and any(limit is not None for limit in money) and not over:
            raise ConfigError(
                f"the key '{key.name}' has a money budget, but the engine '{unpriced[0]}' has no "
                f"price; write [[prices.engines.{unpriced[0]}]]"
            )
