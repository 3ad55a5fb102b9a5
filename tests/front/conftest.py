"""One gateway behind Caddy for most tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.front.caddy import Front, caddy
from tests.needs import program
from tests.wire.serving import SCRIPTED, Running, keyed, running

BEHIND = keyed(SCRIPTED).replace('kind = "scripted"', 'kind = "scripted"\nmax_tokens = 100_000_000')
SERVER = """
[server]
trusted_proxies = ["127.0.0.1"]
body_deadline_s = 2.0

[log]
format = "json"
access = true
"""


@dataclass(frozen=True, slots=True)
class Behind:
    """Caddy, and the gateway behind it."""

    front: Front
    gateway: Running


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """A gateway that wants a key, behind Caddy."""
    program("caddy", "caddy")
    folder: Path = tmp_path_factory.mktemp("behind")
    with running(BEHIND + SERVER, folder) as gateway:
        upstream = f"127.0.0.1:{gateway.address.port}"
        with caddy(folder, [upstream]) as front:
            yield Behind(front, gateway)


@pytest.fixture
def front(behind: Behind) -> Front:
    return behind.front


@pytest.fixture
def client(front: Front) -> Iterator[httpx2.Client]:
    with front.client() as one:
        yield one
