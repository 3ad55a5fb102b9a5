"""Readings on disk: found again, never mixed up, whole after a crash."""

import resource
from pathlib import Path

import pytest

from gateway.calibrating.results import Read, Results
from gateway.config_file import ConfigError

READ = Read((-0.5, -1.25, 1e-9), 12, 0.003)
REFUSED = Read((), refused="too_long")
DOUBTED = Read((0.0, 0.0), 3, 0.1, doubt="not_competent")


def test_readings_are_found_again_as_they_were(tmp_path: Path) -> None:
    with Results(tmp_path / "new", "digest-1") as results:
        for key, read in (("k1", READ), ("k2", REFUSED), ("k3", DOUBTED)):
            results.put(key, read)

    with Results(tmp_path / "new", "digest-1") as again:
        assert (again.get("k1"), again.get("k2"), again.get("k3")) == (READ, REFUSED, DOUBTED)
        assert again.get("k4") is None


def test_another_engine_has_another_file(tmp_path: Path) -> None:
    with Results(tmp_path, "1" * 64) as results:
        results.put("k", READ)

    with Results(tmp_path, "2" * 64) as other:
        assert other.get("k") is None


def test_a_torn_line_is_dropped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    with Results(tmp_path, "d") as results:
        results.put("k1", READ)
        results.put("k2", READ)
    path = results.path
    path.write_bytes(path.read_bytes()[:-9])

    with Results(tmp_path, "d") as again:
        assert (again.get("k1"), again.get("k2")) == (READ, None)
        again.put("k3", REFUSED)

    with Results(tmp_path, "d") as third:
        assert (third.get("k1"), third.get("k3")) == (READ, REFUSED)


def test_a_file_torn_in_its_first_line_begins_again(tmp_path: Path) -> None:
    with Results(tmp_path, "d") as results:
        results.put("k", READ)
    results.path.write_bytes(results.path.read_bytes()[:10])

    with Results(tmp_path, "d") as again:
        assert again.get("k") is None
        again.put("k", READ)
    with Results(tmp_path, "d") as third:
        assert third.get("k") == READ


@pytest.mark.parametrize(
    "content",
    ['{"version": 1, "digest": "other"}\n', "[]\n", '{"version": 1, "digest": "d"}\n{"k": 1}\n'],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "d.jsonl").write_text(content)

    with pytest.raises(ConfigError, match=r"d\.jsonl: not readings of this engine"):
        Results(tmp_path, "d")
    assert (tmp_path / "d.jsonl").read_text() == content


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with Results(tmp_path, "d"), pytest.raises(ConfigError, match="another process"):
        Results(tmp_path, "d")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot be opened"):
        Results(tmp_path / "file", "d")


def test_what_could_not_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    with Results(tmp_path, "d") as results:
        results.put("k1", READ)
        results.write()
        before = results.path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        results.put("k2", READ)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        try:
            with pytest.raises(ConfigError, match=r"d\.jsonl: cannot be written: File too large"):
                results.write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert results.path.read_bytes() == before

    with Results(tmp_path, "d") as again:
        assert again.get("k1") == again.get("k2") == READ
