"""What the samples say: medians of per-round ratios, the A/A control, and goals met or missed."""

import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GOALS = Path(__file__).parent / "GOALS.toml"

MAX_CONTROL_OFFSET = 0.05
"""Two processes of the same server may differ by this much; beyond, the run says nothing."""
MAX_FOREIGN_SHARE = 0.10
"""Wall-clock numbers count only while others use less of the CPUs than this."""

Verdict = Literal["met", "missed", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Per-round values of one quantity."""

    rounds: tuple[float, ...]
    """In the order of the rounds; at least one."""

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.rounds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile, linearly interpolated; the value itself for one round."""
        if len(self.rounds) == 1:
            return self.rounds[0], self.rounds[0]
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True, slots=True)
class Goal:
    """A line of GOALS.toml: `at_most` for a quantity that a bench reports by this name."""

    name: str
    at_most: float
    wall: bool
    """Whether the quantity is wall-clock time, and so counts on a quiet machine only."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A goal, what was measured, and what follows."""

    goal: Goal
    measured: Spread
    verdict: Verdict
    why: str
    """Empty unless inconclusive."""


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours over theirs, round by round.

    Raises:
        ValueError: not the same number of rounds, or none.
    """
    if not ours:
        raise ValueError("no rounds")
    return Spread(tuple(a / b for a, b in zip(ours, theirs, strict=True)))


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least a share `q` in (0, 1] of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-q * len(ordered) // 1) - 1)]


def outcome(
    goal: Goal, measured: Spread, *, control: Spread | None, foreign_share: float
) -> Outcome:
    """Whether a goal is met; inconclusive when the run cannot tell.

    `control` is A over A for goals on ratios to A, `None` for goals without a peer.
    """
    why = ""
    if control is not None and abs(control.median - 1.0) > MAX_CONTROL_OFFSET:
        why = f"the same server twice differs by {abs(control.median - 1.0):.1%}"
    elif goal.wall and foreign_share >= MAX_FOREIGN_SHARE:
        why = f"others used {foreign_share:.0%} of the CPUs"
    if why:
        return Outcome(goal, measured, "inconclusive", why)
    met = measured.median <= goal.at_most
    return Outcome(goal, measured, "met" if met else "missed", "")


def goals(bench: str, path: Path = GOALS) -> dict[str, Goal]:
    """Name → goal, for one bench.

    Raises:
        ValueError: a goal without a positive `at_most`, or with a key that is not known.
    """
    found: dict[str, Goal] = {}
    tables: Mapping[str, Mapping[str, object]] = tomllib.loads(path.read_text()).get(bench, {})
    for name, table in tables.items():
        at_most, wall = table.get("at_most"), table.get("wall", False)
        if not isinstance(at_most, int | float) or isinstance(at_most, bool) or at_most <= 0:
            raise ValueError(f"{bench}.{name} needs a positive at_most")
        if not isinstance(wall, bool) or not table.keys() <= {"at_most", "wall"}:
            raise ValueError(f"{bench}.{name} may only say at_most and wall")
        found[name] = Goal(name, float(at_most), wall)
    return found
