"""Running gateways for the wire tests: a process of its own, or a thread with a given engine."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import uvicorn

from engines.scripted import ScriptedEngine
from gateway import wiring, wiring_engines
from gateway.config import Settings

_URL = re.compile(r"https?://\S+:(\d+)")
_START_S = 60.0
_STOP_S = 20.0

SCRIPTED = """
default_model = "scripted"

[auth.keys]

[engines.scripted]
kind = "scripted"

[models.scripted]
engine = "scripted"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration whose engine answers from a hash."""

STARTER = (Path(__file__).parents[2] / "config.toml").read_text(encoding="utf-8")
"""The configuration as it is shipped: the embedded engine, every setting at its default."""

CHECKPOINT = Path(__file__).parents[2] / "build/checkpoints/tiny-english"
"""Where `need` puts a tiny checkpoint; its import is written beside it."""

LAYA = f"""
default_model = "laya"

[auth.keys]

[engines.laya]
kind = "laya"
path = "{CHECKPOINT}"
language = "any"
tournament = 16
max_tokens = 2048
head_max_tokens = 512
on_overflow = "truncate"

[models.laya]
engine = "laya"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration with a tiny checkpoint of random weights.

Its tokenizer takes a token for each byte of most scripts, so an option in Japanese has more than
the 48 that Laya reads of one: truncating is allowed here.
"""

CASCADE = (
    LAYA.replace('default_model = "laya"', 'default_model = "cascade"').split("[models.laya]")[0]
    + """
[engines.starter]
kind = "starter"

[models.cascade]
tiers = ["starter", "laya"]
aliases = ["jev-latest", "jev-preview"]

[cascade]
default_floor = 0.6
"""
)
"""A cascade of the embedded engine and the tiny checkpoint."""
CLEF = f"""
default_model = "clef"

[server]
deadline_s = 60.0

[auth.keys]

[engines.clef]
kind = "clef"
path = "{Path(__file__).parents[1] / "data/clef/tiny-clef"}"
devices = ["cpu"]
precision = "fp32"
threads = 1

[models.clef]
engine = "clef"
aliases = ["jev-latest", "jev-preview"]
"""
"""A configuration with a tiny Clef checkpoint of random weights, each question read by itself.

Patient: 255 options are 9,000 tokens, on a machine that may be busy with other things.
"""

PATIENT = STARTER.replace("deadline_s = 8.0\n", "deadline_s = 60.0\n", 1)
"""The same for a machine that is busy with other things: an answer may take a minute."""

KEY = "wire-test-key-0123456789abcdef"
"""The bearer key of `keyed` configurations, through the variable `WIRE_KEY`."""


def keyed(config: str) -> str:
    """The same configuration, but with the key `KEY`."""
    table = "[auth.keys]\n"
    assert table in config
    return config.replace(table, table + 'bench = "${WIRE_KEY}"\n')


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


@contextmanager
def process(config: str, folder: Path, *before: str) -> Iterator[Address]:
    """`tiergate serve` with this configuration on a free port; ended by SIGTERM.

    `before`: words in front of the command, for what runs it.

    Raises:
        AssertionError: it does not start, or does not end cleanly; with what it logged.
    """
    path = folder / "config.toml"
    path.write_text(config, encoding="utf-8")
    log = folder / "log.txt"
    command = [
        *before,
        sys.executable,
        "-m",
        "gateway",
        "serve",
        "--config",
        str(path),
        "--port",
        "0",
    ]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "WIRE_KEY": KEY, "PYTHONUNBUFFERED": "1"},
        ) as child,
    ):
        watchdog = threading.Timer(_START_S, child.kill)
        watchdog.start()
        try:
            assert child.stdout is not None
            greeting = next(filter(None, map(_URL.search, child.stdout)), None)
            watchdog.cancel()
            assert greeting is not None, f"the gateway did not start:\n{log.read_text()}"
            yield Address("127.0.0.1", int(greeting[1]), child.pid)
        finally:
            watchdog.cancel()
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
    assert child.returncode == 0, f"it ended with {child.returncode}:\n{log.read_text()}"


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
    servers: list[uvicorn.Server] = []
    ready: Future[asyncio.AbstractEventLoop] = Future()
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(wiring_engines, "open_engine", return_value=engine))
        stack.enter_context(mock.patch.object(wiring, "_Server", _remembering(servers)))
        listener = wiring.bind(settings)
        runner = threading.Thread(target=_run, args=(settings, listener, ready), daemon=True)
        runner.start()
        stack.callback(runner.join, _STOP_S)
        loop = ready.result(_START_S)
        stack.callback(lambda: setattr(servers[0], "should_exit", True))
        yield Gateway(Address("127.0.0.1", listener.getsockname()[1]), engine, loop)
    assert not runner.is_alive(), "the gateway did not stop"


def _run(settings: Settings, listener: Any, ready: "Future[asyncio.AbstractEventLoop]") -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        await wiring.serve(settings, listener, lambda _: ready.set_result(loop))

    try:
        asyncio.run(main())
    except BaseException as error:
        if not ready.done():
            ready.set_exception(error)
        raise


def _remembering(servers: list[uvicorn.Server]) -> type[uvicorn.Server]:
    class Remembered(wiring._Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)

    return Remembered
