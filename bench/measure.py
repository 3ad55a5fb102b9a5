"""What a stretch of time cost, and who else was running: CPU by process, foreign share, pressure.

Linux only: everything is read from /proc.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured stretch."""

    wall_s: float
    server_cpu_s: float
    """User and system time of the server and its children."""
    own_cpu_s: float
    """The same of this process, which makes the load."""
    foreign_share: float
    """Share in [0, 1] of all CPUs that neither of the two used and that was not idle."""
    pressure: float
    """Share in [0, 1] of the time in which something waited for a CPU; NaN where unknown."""


class Stretch:
    """Begun on creation; `sample()` ends it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._server_s = cpu_s(pid)
        self._own_s = cpu_s(os.getpid())
        self._busy_s = _busy_s()
        self._pressure_s = _pressure_s()
        self._begun_s = time.perf_counter()

    def spent_s(self) -> float:
        """CPU seconds of the server since the beginning."""
        return cpu_s(self._pid) - self._server_s

    def sample(self) -> Sample:
        """What happened since the beginning."""
        wall_s = time.perf_counter() - self._begun_s
        server_s = self.spent_s()
        own_s = cpu_s(os.getpid()) - self._own_s
        foreign_s = max(0.0, _busy_s() - self._busy_s - server_s - own_s)
        return Sample(
            wall_s,
            server_s,
            own_s,
            min(1.0, foreign_s / (wall_s * (os.cpu_count() or 1))),
            (_pressure_s() - self._pressure_s) / wall_s,
        )


def cpu_s(pid: int) -> float:
    """User and system seconds of a process, its threads and its children, dead or alive.

    Resolution: one clock tick, 10 ms nearly everywhere.
    """
    ticks = 0
    for one in _family(pid):
        fields = _stat(one)
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_S


def rss_bytes(pid: int) -> int:
    """Resident memory of a process, without its children."""
    return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_BYTES


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """This process on one core; where it was before, afterwards."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> tuple[int, int]:
    """The core for servers and the core for the load; the same one where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def _family(pid: int) -> Iterator[int]:
    """The process and its living descendants."""
    yield pid
    for task in (_PROC / str(pid) / "task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:  # the thread ended meanwhile
            continue
        for child in children:
            yield from _family(int(child))


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third, `state`, on."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _busy_s() -> float:
    """Seconds that all CPUs together were not idle: user, nice, system, interrupts, stolen."""
    fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _waiting, hard, soft, stolen = fields
    return (user + nice + system + hard + soft + stolen) / _TICKS_PER_S


def _pressure_s() -> float:
    """Seconds in which at least one task waited for a CPU; NaN where the kernel does not say."""
    try:
        line = (_PROC / "pressure" / "cpu").read_text().split("\n", 1)[0]
    except OSError:
        return float("nan")
    return int(line.rpartition("total=")[2]) / 1e6
