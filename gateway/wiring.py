"""The composition root: settings to services and lanes; opens in order, closes in reverse.

No other file sees a concrete engine.
"""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvicorn

from engines.contract import Facts
from engines.fleet import Fleet, health_of
from engines.lane import Lane
from gateway.app import Services
from gateway.auth import KeyRing
from gateway.cards import Card
from gateway.config import Settings
from gateway.config_clef import ClefEngineSection
from gateway.config_engines import LayaEngineSection
from gateway.dashboard.terms import page_terms
from gateway.memo import Memo
from gateway.plan import Reader
from gateway.protocol import Protocol
from gateway.routes import build_app
from gateway.wiring_engines import Bytes, CannotStart, open_lanes
from gateway.wiring_health import guarded
from gateway.wiring_ledger import kept, open_books, static_keys
from gateway.wiring_limits import ask_limits, body_limits
from gateway.wiring_plans import new_plans, promises
from gateway.wiring_watch import watched

_LOG = logging.getLogger("tiergate")


def new_services(settings: Settings) -> Services:
    """Services without engines: everything but asking works, and asking is refused with 503."""
    return Services(
        ring=KeyRing(static_keys(settings)),
        body=body_limits(settings),
        ask=ask_limits(settings),
        deadline_s=settings.server.deadline_s,
        default_model=settings.default_model,
    )


def only_model(settings: Settings, model: str | None) -> Settings:
    """The same settings with no engines but those of `model` (or of the default model)."""
    wanted = settings.default_model if model is None else model
    for name, section in settings.models.items():
        if wanted == name or wanted in section.aliases:
            engines = {engine: settings.engines[engine] for engine in section.engines}
            models = {n: m for n, m in settings.models.items() if engines.keys() >= set(m.engines)}
            return settings.model_copy(update={"engines": engines, "models": models})
    return settings


def install(services: Services, settings: Settings, lanes: Mapping[str, Lane | Fleet]) -> None:
    """Make the lanes' models available to requests."""
    readers = {name: _reader(lane, settings, name) for name, lane in lanes.items()}
    facts = {name: lane.engine.facts for name, lane in lanes.items()}
    services.promises = promises(settings.cascade, facts)
    services.plans = new_plans(settings, readers, facts, services.promises)
    services.cards = cards(settings, facts)
    services.engines = {name: _state(one) for name, one in facts.items()}
    services.healths = {name: partial(health_of, lane) for name, lane in lanes.items()}
    services.ready = True


def _reader(lane: Lane | Fleet, settings: Settings, engine: str) -> Reader:
    """The lane, behind a memo where the engine's section wants one and questions are read alone."""
    section = settings.engines[engine]
    if not isinstance(section, LayaEngineSection | ClefEngineSection):
        return lane
    facts = lane.engine.facts
    if not section.memo_bytes or facts.joint:
        return lane
    hits_cost = settings.pricing.cached == "full"
    return Memo(lane, facts.digest, section.memo_bytes, hits_cost=hits_cost)


def cards(settings: Settings, facts: dict[str, Facts]) -> tuple[Card, ...]:
    """Every model and alias that clients may name, models before their aliases."""
    listed = []
    for name, section in settings.models.items():
        engine = facts[section.engines[-1]]
        description = section.description or engine.notes or engine.model
        if len(section.engines) > 1 and not section.description:
            description = f"A cascade: {', then '.join(section.engines)}."
        elif engine.not_competent:
            weak = " and ".join(sorted(engine.not_competent))
            description += f" Not competent for {weak}: such answers carry x_reason."
        listed.append(Card(name, description, section.release_date))
        listed += [
            Card(alias, f"Alias of {name}.", section.release_date) for alias in section.aliases
        ]
    return tuple(listed)


def _state(facts: Facts) -> dict[str, object]:
    return {
        "model": facts.model,
        "digest": facts.digest,
        "max_tokens": facts.max_tokens,
        "not_competent": sorted(facts.not_competent),
    }


def bind(settings: Settings) -> socket.socket:
    """A listening socket on the configured address.

    Raises:
        CannotStart: the address cannot be bound.
    """
    server = settings.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((server.host, server.port))
        listener.listen(server.backlog)
    except OSError as error:
        listener.close()
        raise CannotStart(
            f"cannot listen on {server.host}:{server.port}: {error.strerror}"
        ) from error
    listener.setblocking(False)
    return listener


async def serve(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[bool], None] = lambda _: None,
    loaded: Bytes | None = None,
) -> None:
    """Answer on `listener` until told to stop; asks are 503 while engines load.

    `on_ready` is told whether there are no keys, so that everyone may ask; `loaded` how far large
    weights are.

    Raises:
        CannotStart: an engine cannot be loaded, or has lost its device; nothing is served any more.
    """
    services = new_services(settings)
    with open_books(settings, services):
        await _serve(settings, services, listener, on_ready, loaded)


async def _serve(
    settings: Settings,
    services: Services,
    listener: socket.socket,
    on_ready: Callable[[bool], None],
    loaded: Bytes | None,
) -> None:
    app = build_app(services, access_log=settings.log.access, page=page_terms(settings))
    server = _Server(
        uvicorn.Config(
            app,
            access_log=False,
            backlog=settings.server.backlog,
            http=Protocol,
            lifespan="off",
            proxy_headers=False,  # nothing here depends on who is in front
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(settings.server.drain_s)),
            timeout_keep_alive=settings.server.keep_alive_s,
            ws="none",
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        days = (settings.ledger.retention_days, settings.watch.retention_days)
        async with kept(services, *days), _lanes_on_a_thread(settings, loaded) as lanes:
            install(services, settings, lanes)
            async with watched(services, settings), guarded(settings, lanes, server):
                _settle_garbage()
                on_ready(services.ring.open)
                await serving
    finally:
        server.should_exit = True
        await serving


def _settle_garbage() -> None:
    """Keep the collector off what lives as long as the process, and let it look less often.

    A request's objects are not cyclic: they are freed by count. With the defaults the collector
    took a tenth of the time of a large request, looking through models and settings.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


class _Server(uvicorn.Server):
    """uvicorn, told to stop by SIGINT or SIGTERM without passing the signal on afterwards.

    uvicorn's own handlers raise the signal again when serving has ended, which would end the
    process before the lanes are drained.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.handle_exit, number, None)
        except (NotImplementedError, RuntimeError, ValueError):  # not the main thread
            yield
            return
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


@asynccontextmanager
async def _lanes_on_a_thread(
    settings: Settings, loaded: Bytes | None
) -> AsyncIterator[dict[str, Lane | Fleet]]:
    """`open_lanes` with loading and draining off the event loop."""
    opened = open_lanes(settings, lambda name: _LOG.info("loading", extra={"engine": name}), loaded)
    lanes = await asyncio.to_thread(opened.__enter__)
    try:
        yield lanes
    finally:
        await asyncio.to_thread(opened.__exit__, None, None, None)
