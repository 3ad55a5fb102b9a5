"""What the doctor finds about engines: threads, memory, GPUs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.ledger.sqlite import SqliteStore
from tests.gateway.examining import MACHINE, findings, settings_of


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "ledger.db")
    store = SqliteStore(path)
    yield path
    store.close()


def test_more_threads_than_cpus_are_found(ledger: str) -> None:
    engines = {"starter": {"kind": "starter", "workers": 16}}

    (found,) = findings(settings_of(ledger, engines=engines))

    assert "engines.starter.workers is 16" in found.message
    assert "4 CPUs" in found.message


def test_two_engines_that_want_every_cpu_are_found(ledger: str, tmp_path: Path) -> None:
    engines = {
        "starter": {"kind": "starter"},
        "laya": {"kind": "laya", "path": str(tmp_path)},
    }

    (found,) = findings(settings_of(ledger, engines=engines))

    assert "starter, laya each use all of 4 CPUs" in found.message


def test_weights_that_do_not_fit_into_memory_are_found(ledger: str, tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(9 * 2**30)  # a hole: no byte of it is written
    engines = {"starter": {"kind": "laya", "path": str(tmp_path)}}

    (found,) = findings(settings_of(ledger, engines=engines))

    assert found.check == "memory"


@pytest.fixture
def clef(tmp_path: Path) -> Path:
    """A folder that looks as if it held 18 GiB of weights."""
    folder = tmp_path / "clef"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as weights:
        weights.truncate(18 * 2**30)
    return folder


def test_threads_of_a_large_model_on_the_cpu_are_threads_too(ledger: str, tmp_path: Path) -> None:
    section = {"kind": "clef", "path": str(tmp_path), "devices": ["cpu"], "threads": 16}

    (found,) = findings(settings_of(ledger, engines={"starter": section}))

    assert "engines.starter.threads is 16" in found.message


def test_both_checkpoints_of_an_engine_count_as_memory(ledger: str, clef: Path) -> None:
    section = {"kind": "laya", "path": str(clef), "multilingual_path": str(clef)}

    (found,) = findings(
        settings_of(ledger, engines={"starter": section}), replace(MACHINE, memory_bytes=30 << 30)
    )

    assert "take about 37.3 GiB" in found.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"precision": "fp32"}, "the weights for it alone take 36.0 GiB"),
        ({"precision": "int8"}, None),
        ({"devices": ["cuda:0", "cuda:1"]}, "engines.starter wants cuda:1, but the GPUs end at 0"),
        ({"precision": "fp32", "tables": "host"}, None),  # the engine itself has to say
    ],
)
def test_weights_that_no_gpu_could_hold_are_found(
    ledger: str, clef: Path, changes: dict[str, Any], words: str | None
) -> None:
    section = {"kind": "clef", "path": str(clef), **changes}
    machine = replace(MACHINE, gpus=("NVIDIA L4, 24576 MiB, 570.00",))

    told = findings(settings_of(ledger, engines={"starter": section}), machine)

    found = [one.message for one in told if "cannot use a GPU" not in one.message]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_a_gpu_that_is_not_there_is_found(ledger: str, tmp_path: Path) -> None:
    engines = {"starter": {"kind": "laya", "path": str(tmp_path), "device": "cuda"}}

    found = findings(settings_of(ledger, engines=engines))

    assert {one.check for one in found} == {"gpu"}
    assert "nvidia-smi shows none" in found[0].message
