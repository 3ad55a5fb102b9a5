"""A gateway without sockets: services, a scripted engine, and a client on ASGI."""

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway import issuing
from gateway.app import Services
from gateway.config import ModelSection, Settings
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from gateway.dashboard.terms import page_terms
from gateway.ledger.sqlite import SqliteStore
from gateway.routes import build_app
from gateway.wiring import install, new_services
from gateway.wiring_ledger import open_books
from tests.gateway.commands import config, questions, served

__all__ = ["config", "questions", "served"]

ASK: dict[str, Any] = {
    "state": "I was charged twice",
    "model": "jev-latest",
    "questions": {
        "team": {
            "type": "choice",
            "instructions": "Which team?",
            "criteria": {"billing": "Payments", "tech": None},
        },
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "mood": {"type": "score", "criteria": ["calm", "upset", "angry"]},
    },
}

Gateway = Callable[..., AbstractContextManager[httpx.AsyncClient]]


def settings_of(**sections: Any) -> Settings:
    """Settings with one scripted engine behind the model `scripted-1`, and these sections."""
    return Settings(
        default_model="scripted-1",
        engines={"scripted": ScriptedEngineSection(kind="scripted")},
        models={"scripted-1": ModelSection(engine="scripted", aliases=("jev-latest",))},
        **sections,
    )


@pytest.fixture
def gateway() -> Gateway:
    """A context manager: settings and engine in, a client out."""

    @contextmanager
    def opened(
        settings: Settings | None = None,
        engine: ScriptedEngine | Mapping[str, ScriptedEngine] | None = None,
        *,
        max_waiting: int = 64,
        loaded: bool = True,
    ) -> Iterator[httpx.AsyncClient]:
        chosen = settings or settings_of()
        engines = engine if isinstance(engine, Mapping) else {"scripted": engine}
        lanes = {
            name: Lane(name, one or ScriptedEngine(), rows(1), max_waiting=max_waiting)
            for name, one in engines.items()
        }
        services: Services = new_services(chosen)
        if loaded:
            install(services, chosen, lanes)
        try:
            with open_books(chosen, services):
                page = page_terms(chosen)
                app = build_app(services, access_log=chosen.log.access, page=page)
                transport = httpx.ASGITransport(app)
                yield httpx.AsyncClient(transport=transport, base_url="http://gateway")
        finally:
            for lane in lanes.values():
                lane.close(drain_s=5.0)

    return opened


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    with gateway() as opened:
        async with opened:
            yield opened


def ledger_settings(folder: Path, **changes: Any) -> Settings:
    """Settings with a ledger in the folder, and these fields of `[ledger]` instead."""
    return settings_of(ledger=LedgerSection(path=str(folder / "ledger.db"), **changes))


def bearer(settings: Settings, name: str = "team", **wish: Any) -> dict[str, str]:
    """The headers of a new key that is made as wished."""
    with closing(SqliteStore(settings.ledger.path)) as store:
        wish = {"name": name, **wish}
        issued = issuing.create(store, wish, ["scripted-1", "jev-latest"], time.time())
    return {"authorization": f"Bearer {issued.minted.text}"}


def charged(settings: Settings) -> list[dict[str, Any]]:
    """Every charge in the ledger, oldest first."""
    with closing(sqlite3.connect(settings.ledger.path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM charges ORDER BY 1")]


def body_of(**changes: Any) -> bytes:
    """ASK as bytes, with these top-level fields instead."""
    return json.dumps(ASK | changes).encode()
