"""Rows and engines to findings: reads, fits, certifies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.contract import Facts
from gateway.calibrating.certifying import Measured, Terms, calibrations, promises
from gateway.calibrating.curves import Cost
from gateway.calibrating.findings import EngineFound, Findings, engine_found, group_found
from gateway.calibrating.judging import Judged, Reads, judged
from gateway.calibrating.reading import read_rows
from gateway.calibrating.results import Results
from gateway.calibrating.splitting import Split
from gateway.plan import Reader
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    Mode,
    PolicyFile,
    calibration_digest,
)
from policies.calibration import Calibration
from policies.gates import Gate

OPEN = Gate(images=True)
"""Nothing is kept from the last engine."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One engine that is calibrated."""

    reader: Reader
    facts: Facts
    gate: Gate = OPEN
    """What never reaches it."""

    @property
    def name(self) -> str:
        """The engine's name in the configuration."""
        return self.reader.name


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be found out."""

    split: Split
    terms: Terms
    mode: Mode
    alone: bool
    """Whether floors are wanted for the last engine too: nothing is known of a better one."""
    cost: Cost
    unit: str
    created: str


async def read_all(
    ladder: Sequence[Rung], split: Split, directory: Path, told: Callable[[str, int], None]
) -> dict[str, tuple[Reads, Reads]]:
    """Engine → readings of the rows that calibrate and of those that certify.

    `told` hears the engine's name and how many more rows are done. Readings are kept in
    `directory`.

    Raises:
        EngineError: an engine broke; what was read is kept.
        ConfigError: the readings cannot be kept.
    """
    found: dict[str, tuple[Reads, Reads]] = {}
    for rung in ladder:

        def done(rows: int, name: str = rung.name) -> None:
            told(name, rows)

        joint = rung.facts.joint
        with Results(directory, rung.facts.digest) as results:
            found[rung.name] = (
                await read_rows(rung.reader, split.calibrate, results, joint=joint, told=done),
                await read_rows(rung.reader, split.certify, results, joint=joint, told=done),
            )
    return found


def findings(
    ladder: Sequence[Rung], reads: Mapping[str, tuple[Reads, Reads]], task: Task
) -> Findings:
    """Calibrations, floors and what the report shows, from readings of every engine."""
    measured = [_measured(rung, reads, task, ladder[-1].name) for rung in ladder]
    fitted = [calibrations(one) for one in measured]
    if task.mode == "agreement":  # the last engine agrees with itself whatever it says
        fitted[-1] = EngineCalibration(ladder[-1].facts.digest)
    lower = list(zip(measured, fitted, strict=True))
    if not task.alone:
        lower = lower[:-1]
    groups = promises(lower, task.terms)
    above = None if task.alone else ladder[-1].name
    calibration = CalibrationFile(
        {rung.name: one for rung, one in zip(ladder, fitted, strict=True)}
    )
    found = tuple(
        group_found(group, _raw(group.answers), measured[-1].certify, task.cost, above)
        for of_engine in groups.values()
        for group in of_engine
    )
    promised = tuple(one.group.promise for one in found)
    policy = PolicyFile(
        task.created,
        task.terms.risk,
        task.terms.delta,
        task.mode,
        task.terms.joint,
        {one.engine: _bound(one, own) for one, own in lower},
        promised,
    )
    rows = {
        "calibrate": len(task.split.calibrate),
        "certify": len(task.split.certify),
        "repeated": task.split.repeated,
    }
    engines = _summaries(ladder, measured)
    return Findings(policy, calibration, task.terms, task.mode, engines, found, rows, task.unit)


def _measured(
    rung: Rung, reads: Mapping[str, tuple[Reads, Reads]], task: Task, last: str
) -> Measured:
    calibrate, certify = reads[rung.name]
    truth = reads[last] if task.mode == "agreement" else (None, None)
    gate = OPEN if rung.name == last and not task.alone else rung.gate
    return Measured(
        rung.name,
        rung.facts.digest,
        judged(task.split.calibrate, calibrate, gate, truth[0]),
        judged(task.split.certify, certify, gate, truth[1]),
    )


def _bound(measured: Measured, own: EngineCalibration) -> Bound:
    return Bound(measured.digest, calibration_digest(own))


def _raw(answers: Sequence[Judged]) -> list[float]:
    return [one.likelihood(Calibration()) for one in answers]


def _summaries(ladder: Sequence[Rung], measured: Sequence[Measured]) -> tuple[EngineFound, ...]:
    return tuple(
        engine_found(rung.name, rung.facts.model, rung.facts.digest, one.certify)
        for rung, one in zip(ladder, measured, strict=True)
    )
