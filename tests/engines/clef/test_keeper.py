"""Weights that rest while nobody asks, and come back on demand."""

import threading
from collections.abc import Callable

import pytest

from engines.clef.keeper import Keeper
from engines.contract import Broken, Loading
from tests.engines.lanes import until


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Loads:
    """Counts loads; each takes `takes_s` and waits for `go`."""

    def __init__(self, clock: Clock, takes_s: float = 4.0) -> None:
        self.count = 0
        self.go = threading.Event()
        self.go.set()
        self.fails: Callable[[], None] = lambda: None
        self._clock = clock
        self._takes_s = takes_s

    def __call__(self) -> str:
        assert self.go.wait(10)
        self.fails()
        self.count += 1
        self._clock.now_s += self._takes_s
        return f"weights {self.count}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def resting(clock: Clock, loads: Loads) -> Keeper[str]:
    keeper = Keeper(loads, 1000.0, clock=clock)
    clock.now_s += 1000.0
    assert keeper.rest_if_idle()
    return keeper


def test_what_is_used_stays(clock: Clock) -> None:
    keeper = Keeper(Loads(clock), 1000.0, clock=clock)
    clock.now_s += 999.0

    with keeper.using() as kept:
        assert kept == "weights 1"

    clock.now_s += 999.0
    assert not keeper.rest_if_idle()
    keeper.close()


def test_what_is_dropped_is_told_once_it_is_gone(clock: Clock) -> None:
    gone: list[bool] = []
    keeper: Keeper[str]
    keeper = Keeper(
        Loads(clock), 10.0, dropped=lambda: gone.append(keeper._kept is None), clock=clock
    )

    clock.now_s += 10.0
    keeper.rest_if_idle()

    assert gone == [True]
    keeper.close()


def test_without_keep_alive_it_never_rests(clock: Clock) -> None:
    keeper = Keeper(Loads(clock), clock=clock)
    clock.now_s += 1e9

    assert not keeper.rest_if_idle()
    assert keeper.state == "ready"


async def test_whoever_asks_first_wakes_it_and_is_told_how_long_it_takes(clock: Clock) -> None:
    loads = Loads(clock)
    keeper = resting(clock, loads)
    loads.go.clear()

    with pytest.raises(Loading) as told:
        keeper.want()
    assert told.value.retry_after_s == pytest.approx(4.0)
    assert keeper.state == "loading"
    clock.now_s += 3.0
    with pytest.raises(Loading) as again:
        keeper.want()
    assert again.value.retry_after_s == pytest.approx(1.0)

    loads.go.set()
    await until(lambda: keeper.state == "ready")
    with keeper.using() as kept:
        assert kept == "weights 2"
    assert loads.count == 2
    keeper.close()


async def test_a_load_that_fails_is_tried_again_by_the_next_who_asks(clock: Clock) -> None:
    loads = Loads(clock)
    keeper = resting(clock, loads)

    def fail() -> None:
        raise OSError("the disk is gone")

    loads.fails = fail
    with pytest.raises(Loading):
        keeper.want()
    await until(lambda: keeper.state == "resting")
    loads.fails = lambda: None
    loads.go.clear()

    with pytest.raises(Loading):
        keeper.want()

    loads.go.set()
    await until(lambda: keeper.state == "ready")
    keeper.close()


async def test_a_load_that_fails_for_good_is_the_last(clock: Clock) -> None:
    loads = Loads(clock)
    keeper = Keeper(
        loads, 1000.0, clock=clock, is_final=lambda error: "gone for good" in str(error)
    )
    clock.now_s += 1000.0
    assert keeper.rest_if_idle()

    def fail() -> None:
        raise RuntimeError("gone for good")

    loads.fails = fail
    loads.go.clear()
    with pytest.raises(Loading):
        keeper.want()
    loads.go.set()
    await until(lambda: keeper.state == "lost")

    with pytest.raises(Broken, match="lost"):
        keeper.want()


def test_what_is_lost_stays_lost(clock: Clock) -> None:
    keeper = Keeper(Loads(clock), clock=clock)
    keeper.lose()

    with pytest.raises(Broken, match="lost"), keeper.using():
        pass


def test_a_first_load_that_fails_is_the_openers_to_know(clock: Clock) -> None:
    loads = Loads(clock)

    def fail() -> None:
        raise OSError("no such disk")

    loads.fails = fail

    with pytest.raises(OSError, match="no such disk"):
        Keeper(loads, clock=clock)


async def test_it_goes_to_rest_by_itself() -> None:
    keeper = Keeper(lambda: "weights", 0.05)

    await until(lambda: keeper.state == "resting")

    keeper.close()
