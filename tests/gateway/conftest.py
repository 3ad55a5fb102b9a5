"""A gateway without sockets: services, a scripted engine, and a client on ASGI."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx
import pytest

from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.app import Services, build_app
from gateway.config import ModelSection, ScriptedEngineSection, Settings
from gateway.wiring import install, new_services
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
        engine: ScriptedEngine | None = None,
        *,
        max_waiting: int = 64,
        loaded: bool = True,
    ) -> Iterator[httpx.AsyncClient]:
        chosen = settings or settings_of()
        lane = Lane("scripted", engine or ScriptedEngine(), rows(1), max_waiting=max_waiting)
        services: Services = new_services(chosen)
        if loaded:
            install(services, chosen, {"scripted": lane})
        app = build_app(services, access_log=False)
        transport = httpx.ASGITransport(app)
        try:
            yield httpx.AsyncClient(transport=transport, base_url="http://gateway")
        finally:
            lane.close(drain_s=5.0)

    return opened


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    with gateway() as opened:
        async with opened:
            yield opened


def body_of(**changes: Any) -> bytes:
    """ASK as bytes, with these top-level fields instead."""
    return json.dumps(ASK | changes).encode()
