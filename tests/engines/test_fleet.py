"""Several lanes behind one name."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from engines.contract import Health
from engines.fleet import Fleet, health_of
from engines.lane import Lane, batches

from .lanes import PerQuestion, Piece, ask, until


class Slow(PerQuestion):
    """Reads when it may; may be lost."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        import threading

        self.go = threading.Event()
        self.state: Any = "ready"

    def _wait(self, _: Sequence[Piece]) -> None:
        assert self.go.wait(10)

    @property
    def health(self) -> Health:
        return Health(self.state, {"reads": len(self.batches)})


@pytest.fixture
def engines() -> list[Slow]:
    return [Slow(), Slow()]


@pytest.fixture
def fleet(engines: list[Slow]) -> Iterator[Fleet]:
    lanes = [Lane("test", engine, batches(100), max_waiting=8) for engine in engines]
    found = Fleet("test", lanes)
    yield found
    for engine in engines:
        engine.go.set()
    found.close(drain_s=5.0)
    assert all(engine.closed for engine in engines)


async def test_the_least_busy_lane_reads(fleet: Fleet, engines: list[Slow]) -> None:
    first = asyncio.create_task(fleet.read(ask("a")))
    await until(lambda: len(engines[0].batches) == 1)

    second = asyncio.create_task(fleet.read(ask("b")))
    await until(lambda: len(engines[1].batches) == 1)

    engines[1].go.set()
    await second
    third = asyncio.create_task(fleet.read(ask("c")))
    await third
    engines[0].go.set()
    await first
    assert (engines[0].batches, engines[1].batches) == ([["a"]], [["b"], ["c"]])


async def test_a_lost_device_is_left_out_and_the_rest_goes_on(
    fleet: Fleet, engines: list[Slow]
) -> None:
    engines[0].state = "lost"
    engines[1].go.set()

    for name in ("a", "b"):
        await fleet.read(ask(name))

    assert engines[0].batches == []
    assert fleet.health == Health("ready", {"reads": 2})


def test_it_is_lost_when_all_are(fleet: Fleet, engines: list[Slow]) -> None:
    for engine in engines:
        engine.state = "lost"

    assert health_of(fleet).state == "lost"


def test_it_says_of_itself_what_its_engines_say(fleet: Fleet, engines: list[Slow]) -> None:
    assert fleet.engine is engines[0]
    assert fleet.waiting == 0
