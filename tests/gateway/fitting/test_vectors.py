"""Vectors are remembered, without the texts, and a run that was killed goes on."""

from pathlib import Path

import numpy as np
import pytest

from engines.minilm.embed import Embedder, Vector
from engines.minilm.sentences import DIGEST
from gateway.fitting.vectors import Memory, vectors_of

TEXTS = ["I lost my card", "when does it open", "I lost my card", "long " * 400]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    vector = Embedder.vector

    def counted(self: Embedder, ids: np.ndarray) -> Vector:
        found.append(len(ids))
        return vector(self, ids)

    monkeypatch.setattr(Embedder, "vector", counted)
    return found


def test_a_text_is_read_once_and_then_remembered(tmp_path: Path, runs: list[int]) -> None:
    told: list[tuple[int, int]] = []
    first = vectors_of(TEXTS, Memory(tmp_path), threads=2, told=lambda *so: told.append(so))
    assert len(runs) == 2

    again = vectors_of(TEXTS, Memory(tmp_path), threads=1)

    assert len(runs) == 2
    assert first.keys() == again.keys() == {"I lost my card", "when does it open"}
    assert all(np.array_equal(first[text], again[text]) for text in first)
    assert told[-1] == (3, 3)


def test_no_text_is_on_disk(tmp_path: Path) -> None:
    vectors_of(TEXTS, Memory(tmp_path), threads=1)

    (path,) = tmp_path.iterdir()

    assert path.name == f"{DIGEST[:16]}.vectors"
    assert b"card" not in path.read_bytes()


def test_half_a_record_is_forgotten_and_the_rest_kept(tmp_path: Path, runs: list[int]) -> None:
    vectors_of(TEXTS, Memory(tmp_path), threads=1)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    runs.clear()

    vectors_of(TEXTS, Memory(tmp_path), threads=1)

    assert len(runs) == 1
    assert path.stat().st_size == 2 * (32 + 4 * 384)


def test_a_record_that_is_no_unit_vector_is_read_again(tmp_path: Path, runs: list[int]) -> None:
    vectors_of(TEXTS[:1], Memory(tmp_path), threads=1)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:32] + b"\0" * (4 * 384))
    runs.clear()

    vectors_of(TEXTS[:1], Memory(tmp_path), threads=1)

    assert len(runs) == 1


def test_without_a_folder_nothing_is_written(tmp_path: Path, runs: list[int]) -> None:
    memory = Memory(None)
    vectors_of(TEXTS, memory, threads=1)
    vectors_of(TEXTS, memory, threads=1)

    assert len(runs) == 2
    assert list(tmp_path.iterdir()) == []
