"""How many CPUs this process may use: never simply how many the machine has."""

import os
from pathlib import Path


def cpu_quota() -> int:
    """CPUs this process may use: the smaller of affinity and cgroup quota, at least 1."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, _cgroup_quota() or cpus))


def _cgroup_quota() -> int | None:
    """Whole CPUs that the control groups above this process allow; `None` = no limit known."""
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    own = next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
    folders = [root / own, *(root / own).parents] if own else [root]
    limits = [_limit(folder) for folder in folders if folder.is_relative_to(root)]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(folder: Path) -> int | None:
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
