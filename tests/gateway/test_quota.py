"""What may be used of the machine, by affinity and control groups."""

import os
from pathlib import Path

import pytest

from gateway.quota import control_groups, cpu_limit, cpu_quota, memory_limit_bytes


def test_the_quota_is_at_least_one_and_at_most_what_the_scheduler_gives() -> None:
    assert 1 <= cpu_quota() <= len(os.sched_getaffinity(0))


def test_a_narrower_affinity_is_a_smaller_quota() -> None:
    given = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(given)})
        assert cpu_quota() == 1
    finally:
        os.sched_setaffinity(0, given)


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def test_the_tightest_of_the_groups_above_counts(tmp_path: Path) -> None:
    root, own = tmp_path / "groups", tmp_path / "own"
    own.write_text("0::/system.slice/tiergate.service\n")
    group(root)
    group(root / "system.slice", cpu_max="350000 100000\n", memory_max="1073741824\n")
    group(root / "system.slice/tiergate.service", cpu_max="max 100000\n", memory_max="max\n")

    found = control_groups(root, own)

    assert found[0] == root / "system.slice/tiergate.service"
    assert found[-1] == root
    assert cpu_limit(found) == 3
    assert memory_limit_bytes(found) == 2**30


@pytest.mark.parametrize(("said", "cpus"), [("50000 100000", 1), ("max 100000", None), ("", None)])
def test_a_part_of_a_cpu_is_one_and_no_number_is_no_limit(
    tmp_path: Path, said: str, cpus: int | None
) -> None:
    group(tmp_path, cpu_max=said, memory_max="max")

    assert cpu_limit([tmp_path]) == cpus
    assert memory_limit_bytes([tmp_path]) is None


def test_groups_of_the_first_version_are_read(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("200000")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    (tmp_path / "memory/memory.limit_in_bytes").write_text("4096")

    assert cpu_limit([tmp_path]) == 2
    assert memory_limit_bytes([tmp_path]) == 4096


def test_without_groups_there_are_no_limits(tmp_path: Path) -> None:
    assert control_groups(tmp_path, tmp_path / "nothing") == ()
    assert cpu_limit(()) is None
