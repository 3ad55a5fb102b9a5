"""What a calibration found out, for the table, the report and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.calibrating.certifying import Group, Terms
from gateway.calibrating.curves import Cost, Trade, at_floor, trades
from gateway.calibrating.judging import Judged
from gateway.policy_file import CalibrationFile, Mode, PolicyFile
from policies.calibration import expected_calibration_error


@dataclass(frozen=True, slots=True)
class EngineFound:
    """How one engine did on the rows that certify."""

    name: str
    model: str
    digest: str
    questions: int
    refused: int
    """Of the questions, those it could not read."""
    accuracy: float | None
    """Share of right answers among those it read that have a label; `None` = there are none."""
    mean_tokens: float
    mean_ms: float
    """Engine time of one question."""


@dataclass(frozen=True, slots=True)
class GroupFound:
    """A group of answers with the numbers of its charts."""

    group: Group
    raw: tuple[float, ...]
    """The engine's own probabilities of `group.answers`, without calibration."""
    trades: tuple[Trade, ...]
    """Empty where there is no better engine."""

    @property
    def right(self) -> list[bool]:
        """Whether each of `group.answers` is right."""
        return [one.right for one in self.group.answers]

    @property
    def chosen(self) -> Trade | None:
        """What the floor costs and is right at; `None` where there is no better engine."""
        return at_floor(self.trades, self.group.promise.floor) if self.trades else None

    @property
    def errors_of_calibration(self) -> tuple[float, float] | None:
        """Expected calibration error of `raw` and of the likelihoods; `None` without answers."""
        if not self.raw:
            return None
        return (
            expected_calibration_error(self.raw, self.right),
            expected_calibration_error(self.group.likelihoods, self.right),
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything a calibration found out."""

    policy: PolicyFile
    calibration: CalibrationFile
    terms: Terms
    mode: Mode
    engines: tuple[EngineFound, ...]
    """The cheapest first; the last one has nothing above it where there are several."""
    groups: tuple[GroupFound, ...]
    rows: Mapping[str, int]
    """`calibrate`, `certify` and `repeated` → how many."""
    unit: str
    """What costs are in, e.g. `tokens a question`."""

    @property
    def promised(self) -> int:
        """How many groups have a floor."""
        return sum(found.group.promise.promised for found in self.groups)


def engine_found(name: str, model: str, digest: str, some: Sequence[Judged]) -> EngineFound:
    """The summary of an engine's questions."""
    read = [one for one in some if one.read.refused is None]
    labelled = [one for one in read if one.label is not None]
    count = max(1, len(read))
    return EngineFound(
        name,
        model,
        digest,
        len(some),
        len(some) - len(read),
        sum(one.right for one in labelled) / len(labelled) if labelled else None,
        sum(one.read.tokens for one in read) / count,
        sum(one.read.seconds for one in read) * 1e3 / count,
    )


def group_found(
    group: Group, raw: Sequence[float], last: Sequence[Judged], cost: Cost, name: str | None
) -> GroupFound:
    """The group with its charts' numbers; `last` are the answers of the engine `name` above it."""
    if name is None:
        return GroupFound(group, tuple(raw), ())
    small = [*zip(group.answers, group.likelihoods, strict=True)]
    small += [(one, -1.0) for one in group.away]
    if not small:
        return GroupFound(group, tuple(raw), ())
    large = {(one.row, one.name): one for one in last}
    found = trades(small, large, cost, (group.promise.engine, name))
    return GroupFound(group, tuple(raw), tuple(found))
