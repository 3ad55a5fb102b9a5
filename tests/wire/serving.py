"""Running gateways for the wire tests: a process of its own, or a thread with a given engine."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import uvicorn

from engines.scripted import ScriptedEngine
from gateway import serving, wiring_engines
from gateway.config import Settings

from .configs import CASCADE, CHECKPOINT, CLEF, KEY, LAYA, PATIENT, SCRIPTED, STARTER, keyed

_URL = re.compile(r"https?://\S+:(\d+)")
_START_S = 60.0
_STOP_S = 20.0

__all__ = [
    "CASCADE",
    "CHECKPOINT",
    "CLEF",
    "KEY",
    "LAYA",
    "PATIENT",
    "SCRIPTED",
    "STARTER",
    "Address",
    "Gateway",
    "Running",
    "Watched",
    "keyed",
    "process",
    "running",
    "thread",
]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gateway listens."""

    host: str
    port: int
    pid: int = 0
    """Of its process; 0 = it is a thread of the tests."""

    @property
    def url(self) -> str:
        """Root of every route, without a slash at the end."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway in a process of its own."""

    address: Address
    child: "subprocess.Popen[str]"
    config: Path
    log: Path
    """Standard error."""

    @property
    def url(self) -> str:
        """Root of every route, without a slash at the end."""
        return self.address.url

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.child.pid


@contextmanager
def process(config: str, folder: Path, *before: str) -> Iterator[Address]:
    """The address of `running`."""
    with running(config, folder, before=before) as one:
        yield one.address


@contextmanager
def running(
    config: str,
    folder: Path,
    *,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    hang_up: bool = False,
    before: Sequence[str] = (),
) -> Iterator[Running]:
    """`tiergate serve` with this configuration, by default on a free port; ended by SIGTERM.

    With `hang_up` it gets a SIGHUP as soon as it listens.

    `before`: words in front of the command, for what runs it.

    Raises:
        AssertionError: it does not start, or does not end cleanly; with what it logged.
    """
    path, log = folder / "config.toml", folder / "log.txt"
    path.write_text(config, encoding="utf-8")
    command = [*before, sys.executable, "-m", "gateway", "serve", "--config", str(path)]
    variables = {"WIRE_KEY": KEY, "PYTHONUNBUFFERED": "1", **(environment or {})}
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **variables},
        ) as child,
    ):
        watchdog = threading.Timer(_START_S, child.kill)
        watchdog.start()
        try:
            assert child.stdout is not None
            if hang_up:
                while "loading" not in log.read_text():
                    assert child.poll() is None, f"the gateway did not start:\n{log.read_text()}"
                child.send_signal(signal.SIGHUP)
            greeting = next(filter(None, map(_URL.search, child.stdout)), None)
            watchdog.cancel()
            assert greeting is not None, f"the gateway did not start:\n{log.read_text()}"
            yield Running(Address("127.0.0.1", int(greeting[1]), child.pid), child, path, log)
        finally:
            watchdog.cancel()
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
    assert child.returncode == 0, f"it ended with {child.returncode}:\n{log.read_text()}"


@contextmanager
def doomed(config: str, folder: Path) -> Iterator[Running]:
    """`running`, to be killed within the block."""
    try:
        with running(config, folder) as gateway:
            yield gateway
    except AssertionError as error:
        if f"ended with -{signal.SIGKILL:d}" not in str(error):
            raise


class Watched(ScriptedEngine):
    """A scripted engine that tells when a read begins, and how many have."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.begun = threading.Semaphore(0)
        """Released once per read, before the engine waits for `hold`."""

    def read(self, batch: Sequence[Any]) -> Any:
        self.begun.release()
        return super().read(batch)

    def await_read(self) -> None:
        """Nothing, once a read has begun.

        Raises:
            AssertionError: none begins.
        """
        assert self.begun.acquire(timeout=10), "the engine was not asked"


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway on a thread of the tests' own process."""

    address: Address
    engine: Watched
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        """Root of every route, without a slash at the end."""
        return self.address.url


@contextmanager
def thread(
    engine: Watched, *, max_waiting: int = 64, **sections: dict[str, Any]
) -> Iterator[Gateway]:
    """The gateway as `tiergate serve` wires it, one lane thread in front of `engine`.

    `sections` replace the defaults of `[server]`, `[limits]`, … . Whoever holds the engine lets
    it go before leaving.
    """
    server = {"port": 0, "drain_s": 1.0, **sections.pop("server", {})}
    settings = Settings.model_validate(
        {
            "default_model": "scripted",
            "engines": {"scripted": {"kind": "scripted", "workers": 1, "max_waiting": max_waiting}},
            "models": {"scripted": {"engine": "scripted", "aliases": ["jev-latest"]}},
            "server": server,
            **sections,
        }
    )
    with (
        mock.patch.object(wiring_engines, "open_engine", return_value=engine),
        inside(settings) as (address, loop),
    ):
        yield Gateway(address, engine, loop)


@contextmanager
def inside(settings: Settings) -> Iterator[tuple[Address, asyncio.AbstractEventLoop]]:
    """The gateway of these settings on a thread of the tests' own process, and its event loop."""
    servers: list[uvicorn.Server] = []
    ready: Future[asyncio.AbstractEventLoop] = Future()
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(serving, "_Server", _remembering(servers)))
        listener = serving.bind(settings)
        runner = threading.Thread(target=_run, args=(settings, listener, ready), daemon=True)
        runner.start()
        stack.callback(runner.join, _STOP_S)
        loop = ready.result(_START_S)
        stack.callback(lambda: setattr(servers[0], "should_exit", True))
        yield Address("127.0.0.1", listener.getsockname()[1]), loop
    assert not runner.is_alive(), "the gateway did not stop"


def _run(settings: Settings, listener: Any, ready: "Future[asyncio.AbstractEventLoop]") -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        await serving.serve(settings, listener, lambda _: ready.set_result(loop))

    try:
        asyncio.run(main())
    except BaseException as error:
        if not ready.done():
            ready.set_exception(error)
        raise


def _remembering(servers: list[uvicorn.Server]) -> type[uvicorn.Server]:
    class Remembered(serving._Server):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            servers.append(self)

    return Remembered
