"""A gateway that watches its cascade, without sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from engines.contract import Question, Text, label_count
from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.app import Services
from gateway.config import ModelSection, Settings
from gateway.config_cascade import CascadeSection
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from gateway.config_watch import WatchSection
from gateway.dashboard.terms import page_terms
from gateway.ledger.decisions import Logged, Period
from gateway.ledger.sqlite import SqliteStore
from gateway.routes import build_app
from gateway.watching import Watcher
from gateway.wiring import install, new_services
from gateway.wiring_ledger import open_books
from gateway.wiring_watch import watched

URGENT = {"type": "noul", "instructions": "Is it urgent?"}
TEAM = {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "x", "tech": "y"}}


def watched_settings(
    folder: Path, *, mode: Any = None, cascade: Any = None, **watch: Any
) -> Settings:
    """Two scripted engines behind the model `cascade`, and a ledger in the folder."""
    scripted = ScriptedEngineSection(kind="scripted")
    return Settings(
        default_model="cascade",
        engines={"small": scripted, "large": scripted},
        models={"cascade": ModelSection(tiers=("small", "large"), mode=mode)},
        cascade=CascadeSection(**(cascade or {})),
        ledger=LedgerSection(path=str(folder / "ledger.db")),
        watch=WatchSection(**{"shadow_share": 1.0, "most_disagreement": 0.1} | watch),
    )


def says(label: int, sure: float = 9.0) -> ScriptedEngine:
    """An engine that always names the label at this place."""

    def script(_: Text, question: Question) -> Sequence[float]:
        return [sure if place == label else 0.0 for place in range(label_count(question))]

    return ScriptedEngine(script=script)


def pair(small: int = 0, large: int = 0, sure: float = 9.0) -> dict[str, ScriptedEngine]:
    """A small engine that names one label, so sure of it, and a large one that names another."""
    return {"small": says(small, sure), "large": says(large)}


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway at work."""

    client: httpx.AsyncClient
    services: Services
    settings: Settings

    async def ask(self, state: str = "I was charged twice", **questions: Any) -> Any:
        """The answer to these questions, or to one about teams."""
        body = {"state": state, "questions": questions or {"team": TEAM}}
        answer = await self.client.post("/v1/systemone", content=json.dumps(body))
        assert answer.status_code == 200, answer.text
        return answer.json() | {"id": answer.headers["x-typesafe-request-id"]}

    async def settled(self) -> None:
        """Wait until every second opinion was read and everything is written down."""
        witness = self.services.witness
        assert isinstance(witness, Watcher)
        await asyncio.wait_for(witness.opinions.idle(), 10)
        books = self.services.books
        assert books is not None
        await books.writer.submit(lambda _: None)

    def logged(self) -> list[Logged]:
        """Every decision in the ledger."""
        with closing(SqliteStore(self.settings.ledger.path)) as store:
            return list(store.decisions(Period()))


@asynccontextmanager
async def running(
    settings: Settings, engines: Mapping[str, ScriptedEngine]
) -> AsyncIterator[Running]:
    """The gateway as `tiergate serve` wires it, in front of these engines."""
    lanes = {name: Lane(name, one, rows(1), max_waiting=64) for name, one in engines.items()}
    services = new_services(settings)
    try:
        with open_books(settings, services):
            install(services, settings, lanes)
            async with watched(services, settings):
                page = page_terms(settings)
                transport = httpx.ASGITransport(build_app(services, access_log=False, page=page))
                async with httpx.AsyncClient(transport=transport, base_url="http://gw") as client:
                    yield Running(client, services, settings)
    finally:
        for lane in lanes.values():
            lane.close(drain_s=5.0)
