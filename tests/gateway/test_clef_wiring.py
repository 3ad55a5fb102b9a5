"""Clef engines are put together: devices, progress, loss of a device, what cannot start."""

from collections.abc import Mapping
from typing import Any

import pytest

from engines.contract import Health
from engines.fleet import Fleet
from engines.scripted import ScriptedEngine
from gateway import wiring_engines
from gateway.wiring_engines import CannotStart
from gateway.wiring_health import guarded
from tests.engines.lanes import until

from .clefs import section, settings_of


class Server:
    """Something that serves until it is told not to."""

    should_exit = False


class Lost(ScriptedEngine):
    """An engine whose device goes when it is told."""

    gone = False

    @property
    def health(self) -> Health:
        return Health("lost" if self.gone else "ready")


@pytest.mark.parametrize("on_lost", ["stop", "stay"])
async def test_a_lost_device_ends_the_process_where_the_operator_wants_that(
    monkeypatch: pytest.MonkeyPatch, on_lost: str
) -> None:
    engine, server = Lost(), Server()
    monkeypatch.setattr(wiring_engines, "open_engine", lambda *_, **__: engine)
    settings = settings_of(section(on_lost=on_lost))

    async def served(lanes: Mapping[str, Any]) -> None:
        async with guarded(settings, lanes, server, look_each_s=0.001):
            engine.gone = True
            if on_lost == "stop":
                await until(lambda: server.should_exit)

    with wiring_engines.open_lanes(settings) as lanes:
        if on_lost == "stop":
            with pytest.raises(CannotStart, match="lost its device"):
                await served(lanes)
        else:
            await served(lanes)

    assert server.should_exit is (on_lost == "stop")


def test_each_device_has_an_engine_of_its_own_behind_one_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    def scripted(_: str, __: Any, **more: Any) -> ScriptedEngine:
        opened.append(more["device"])
        return ScriptedEngine()

    monkeypatch.setattr(wiring_engines, "open_engine", scripted)

    with wiring_engines.open_lanes(settings_of(section(devices=("cuda:0", "cuda:1")))) as lanes:
        assert isinstance(lanes["clef"], Fleet)

    assert opened == ["cuda:0", "cuda:1"]


def test_loading_is_told_in_tenths_where_there_is_no_bar() -> None:
    told: list[str] = []
    loaded = wiring_engines._in_steps(told.append)

    for done in range(0, 20):
        loaded("clef on cuda", done << 30, 19 << 30)
    loaded("small", 10, 10)

    assert told[0].startswith("clef on cuda: 0 %")
    assert told[-1].startswith("clef on cuda: 100 % of 20.4 GB")
    assert len(told) == 11


def test_a_missing_package_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(**_: object) -> None:
        raise ImportError(name="torch")

    monkeypatch.setattr(wiring_engines, "engine_class", lambda _: lacking)

    with pytest.raises(CannotStart, match=r"pip install '\.\[clef\]'"):
        wiring_engines.open_engine("clef", section())


def test_a_device_that_is_not_there_stops_the_start_with_a_sentence() -> None:
    with pytest.raises(CannotStart, match="CUDA"):
        wiring_engines.open_engine("clef", section(devices=("cuda:7",)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"devices": ("cuda:0", "cuda:0")}, "names one twice"),
        ({"devices": ("tpu",)}, "pattern"),
        ({"max_tokens": 1024, "max_state_tokens": 2048}, "more than max_tokens"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        section(**options)
