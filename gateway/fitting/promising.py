"""Promises about fitted heads, put beside those that a policy holds already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.config_file import ConfigError
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    Mode,
    PolicyFile,
    Promise,
    calibration_digest,
    promise_by,
)
from policies.certify import Certificate


@dataclass(frozen=True, slots=True)
class Change:
    """What fitting did to the engine that reads a folder of heads."""

    engine: str
    """Its name in the configuration."""
    before: str | None
    """Its digest until now; `None` = there was none that could be loaded."""
    after: str
    certificates: Mapping[str, tuple[str, Certificate | None]]
    """Fingerprint → name of the question and what is promised, for each new head."""


def promised(
    policy: PolicyFile | None, new: PolicyFile, calibration: CalibrationFile | None, change: Change
) -> tuple[PolicyFile, CalibrationFile]:
    """The files with the new heads' promises in them, bound to the engine as it is now.

    `new` says what is promised and has no floors. Promises about heads that are still there go on
    if they held until now: the heads are the same files. Those that did not hold are left out.

    Raises:
        ConfigError: the policy promises something else.
    """
    old = policy or new
    refuse_other_terms(policy, new.risk, new.mode)
    held = change.engine in old.engines and old.engines[change.engine].digest == change.before
    entries = {} if calibration is None else dict(calibration.engines)
    entry = _entry(entries.get(change.engine), held, change)
    entries[change.engine] = entry
    kept = [one for one in old.floors if _goes_on(one, held, change)]
    floors = (*kept, *_promises(change, new.delta))
    bound = Bound(change.after, calibration_digest(entry))
    made = PolicyFile(
        created=new.created,
        risk=old.risk,
        delta=max(old.delta, new.delta),
        mode=old.mode,
        joint=new.joint and not kept,
        engines={**old.engines, change.engine: bound},
        floors=floors,
    )
    return made, CalibrationFile(entries)


def refuse_other_terms(policy: PolicyFile | None, risk: float, mode: Mode) -> None:
    """Raises: ConfigError: the policy promises something else, and a file has one promise."""
    if policy is not None and (policy.risk, policy.mode) != (risk, mode):
        raise ConfigError(
            f"the policy promises a risk of {policy.risk:g} by {policy.mode}; a promise of "
            f"{risk:g} by {mode} cannot stand in the same file: give --risk {policy.risk:g} or "
            "another --policy"
        )


def _entry(old: EngineCalibration | None, held: bool, change: Change) -> EngineCalibration:
    """The engine's calibration: none for the new heads, which are calibrated in themselves."""
    if old is None or not held:
        return EngineCalibration(change.after)
    kept = {mark: one for mark, one in old.questions.items() if mark not in change.certificates}
    return EngineCalibration(change.after, old.cells, kept)


def _goes_on(promise: Promise, held: bool, change: Change) -> bool:
    if promise.engine != change.engine:
        return True
    return held and promise.question not in change.certificates


def _promises(change: Change, delta: float) -> Sequence[Promise]:
    return [
        _promise(change.engine, mark, name, certificate, delta)
        for mark, (name, certificate) in change.certificates.items()
    ]


def _promise(
    engine: str, mark: str, name: str, certificate: Certificate | None, delta: float
) -> Promise:
    if certificate is None:
        nothing = "none: nothing was kept back to test on"
        return Promise(engine, False, 0, delta, question=mark, name=name, start_rule=nothing)
    return replace(promise_by(certificate, engine), question=mark, name=name)
