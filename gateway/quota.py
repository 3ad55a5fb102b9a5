"""What this process may use of the machine: never simply what the machine has."""

import os
from collections.abc import Sequence
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cpu_quota() -> int:
    """CPUs this process may use: the smaller of affinity and cgroup quota, at least 1."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, cpu_limit(control_groups()) or cpus))


def control_groups(root: Path = _GROUPS, own: Path = _OWN) -> tuple[Path, ...]:
    """Folders of the control groups above this process, its own first; none where there are none.

    `own` is the file that says which one it is in, below `root`.
    """
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    name = next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
    folders = [root / name, *(root / name).parents] if name else [root]
    return tuple(folder for folder in folders if folder.is_relative_to(root))


def cpu_limit(groups: Sequence[Path]) -> int | None:
    """Whole CPUs that these control groups allow, at least 1; `None` = no limit known."""
    limits = [_cpus(folder) for folder in groups]
    return min((limit for limit in limits if limit is not None), default=None)


def memory_limit_bytes(groups: Sequence[Path]) -> int | None:
    """Bytes that these control groups allow; `None` = no limit known."""
    limits = [_bytes(folder) for folder in groups]
    return min((limit for limit in limits if limit is not None), default=None)


def _cpus(folder: Path) -> int | None:
    """The quota of one control group, version 2 or 1, in whole CPUs, at least 1."""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu/cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu/cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    limited = quota.isdigit() and period.isdigit() and int(period) > 0
    return max(1, int(quota) // int(period)) if limited else None


def _bytes(folder: Path) -> int | None:
    """The cap on memory of one control group, version 2 or 1."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = (folder / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(limit) if limit.isdigit() else None
    return None
