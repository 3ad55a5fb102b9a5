"""A gateway that serves: the socket, the server around the application, and how it ends.

Services are opened around the server, in order, and closed in reverse.
"""

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType

import uvicorn

from engines.fleet import Fleet
from engines.lane import Lane
from gateway import __version__
from gateway.app import Services
from gateway.aside import work_aside
from gateway.config import Settings
from gateway.config_file import Configuration
from gateway.dashboard.terms import page_terms
from gateway.notify import Notifier
from gateway.protocol import Protocol
from gateway.reload import Reloader
from gateway.routes import build_app
from gateway.traces import open_traces
from gateway.wiring import install, new_services
from gateway.wiring_engines import Bytes, CannotStart, open_lanes
from gateway.wiring_health import guarded
from gateway.wiring_ledger import kept, open_books
from gateway.wiring_watch import watched

_LOG = logging.getLogger("tiergate")
_LAST = (b"connection", b"close")
_LOOK_TICKS = 50
"""Tenths of a second between two looks at whether callers read their answers."""


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


@dataclass(frozen=True, slots=True)
class Outside:
    """What serving has to do with whoever started it."""

    loaded: Bytes | None = None
    """Told how far large weights are."""
    read: Callable[[], Configuration] | None = None
    """Reads the settings again, when SIGHUP asks for it."""


_NOBODY = Outside()


async def serve(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[bool], None] = lambda _: None,
    outside: Outside = _NOBODY,
) -> None:
    """Answer on `listener` until told to stop; asks are 503 while engines load.

    `on_ready` is told whether there are no keys, so that everyone may ask.

    Raises:
        CannotStart: an engine cannot be loaded, or has lost its device; nothing is served any more.
    """
    work_aside()
    services, notifier = new_services(settings), Notifier()
    server = _Server(_uvicorn(settings, services), services, settings.server.leave_s)
    server.on_stop = notifier.stopping
    with server.told(), open_traces(settings) as traces, open_books(settings, services):
        services.journal.traces = traces
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            days = (settings.ledger.retention_days, settings.watch.retention_days)
            lanes_open = _lanes_on_a_thread(settings, notifier, outside.loaded)
            async with kept(services, *days), notifier.watched(), lanes_open as lanes:
                install(services, settings, lanes)
                async with watched(services, settings), guarded(settings, lanes, server):
                    _settle_garbage()
                    if outside.read is not None:
                        reloader = Reloader(outside.read, settings, services, lanes)
                        server.on_hangup = partial(_reload, reloader, notifier)
                    _LOG.info("ready", extra={"version": __version__})
                    on_ready(services.ring.open)
                    notifier.ready()
                    await serving
                    notifier.stopping()
        finally:
            server.should_exit = True
            await serving
    _LOG.info("stopped")


async def _reload(reloader: Reloader, notifier: Notifier) -> None:
    notifier.reloading()
    await reloader.reload()
    notifier.ready()


def _uvicorn(settings: Settings, services: Services) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(services, access_log=settings.log.access, page=page_terms(settings)),
        access_log=False,
        backlog=settings.server.backlog,
        http=Protocol,
        interface="asgi3",
        lifespan="off",
        proxy_headers=False,  # who is in front is judged in proxies.py
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.server.drain_s)),
        timeout_keep_alive=settings.server.keep_alive_s,
        ws="none",
    )


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
    process before the lanes are drained. Before SIGTERM ends it, `/ready` says so for a while;
    SIGHUP asks for the configuration to be read again.
    """

    def __init__(self, config: uvicorn.Config, services: Services, leave_s: float) -> None:
        super().__init__(config)
        self.on_hangup: Callable[[], Coroutine[None, None, None]] | None = None
        self.on_stop: Callable[[], None] = lambda: None
        self._services = services
        self._leave_s = leave_s
        self._hangups: set[asyncio.Task[None]] = set()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: what uvicorn does; and now and then a look at every connection."""
        if counter % _LOOK_TICKS == 0:
            now_s = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol):
                    connection.look(now_s)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: `told` does it for longer, from before the models are loaded."""
        yield

    @contextmanager
    def told(self) -> Iterator[None]:
        """Listen to signals as long as the block lasts; on the main thread."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
            loop.add_signal_handler(signal.SIGTERM, self._leave)
            loop.add_signal_handler(signal.SIGINT, self.handle_exit, signal.SIGINT, None)
        except (NotImplementedError, RuntimeError, ValueError):  # not the main thread
            yield
            return
        try:
            yield
        finally:
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop as uvicorn does, and say so the first time."""
        if not self.should_exit:
            _LOG.info("stopping", extra={"in_progress": len(self.server_state.tasks)})
            self.on_stop()
        super().handle_exit(sig, frame)

    def _leave(self) -> None:
        """The first time only say goodbye, the second time go at once.

        From then on every answer ends its connection, so that nobody is about to ask on one of them
        when they are closed. Caddy would not repeat a POST that met such an end.
        """
        again, self._services.leaving = self._services.leaving, True
        self.config.encoded_headers.append(_LAST)  # what uvicorn's ticks put into every response
        self.server_state.default_headers = [*self.server_state.default_headers, _LAST]
        wait_s = 0.0 if again else self._leave_s
        if wait_s:
            _LOG.info("leaving", extra={"for_s": wait_s})
        asyncio.get_running_loop().call_later(wait_s, self.handle_exit, signal.SIGTERM, None)

    def _hang_up(self) -> None:
        if self.on_hangup is None:
            _LOG.warning("the models are still loading; nothing is reloaded")
            return
        task = asyncio.create_task(self.on_hangup())
        self._hangups.add(task)
        task.add_done_callback(self._hangups.discard)


@asynccontextmanager
async def _lanes_on_a_thread(
    settings: Settings, notifier: Notifier, loaded: Bytes | None
) -> AsyncIterator[dict[str, Lane | Fleet]]:
    """`open_lanes` with loading and draining off the event loop."""

    def told(name: str) -> None:
        _LOG.info("loading", extra={"engine": name})
        notifier.loading(name)

    opened = open_lanes(settings, told, loaded)
    lanes = await asyncio.to_thread(opened.__enter__)
    try:
        yield lanes
    finally:
        await asyncio.to_thread(opened.__exit__, None, None, None)
