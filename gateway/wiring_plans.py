"""Settings, engines and what is known about them, to plans."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from engines.contract import Facts
from gateway.config import ModelSection, Settings
from gateway.config_cascade import OTHERWISE, CascadeSection
from gateway.config_file import ConfigError
from gateway.config_prices import engine_prices
from gateway.plan import AS_IT_IS, Plan, Promised, Reader, Rules, Tier
from gateway.policy_file import (
    CalibrationFile,
    calibrations_of,
    floors_of,
    load_calibration,
    load_policy,
    suspended,
)
from policies.cascade import Calibrations, Floors
from policies.cells import CELLS
from policies.gates import Gate

_LOG = logging.getLogger("tiergate")
_KINDS = frozenset({"noul", "choice", "score"})


def promises(cascade: CascadeSection, facts: Mapping[str, Facts]) -> dict[str, Promised]:
    """Engine → what the policy says of it; empty without a policy.

    Raises:
        ConfigError: a file cannot be read, or says what cannot be.
    """
    if not cascade.policy:
        return {}
    policy = load_policy(Path(cascade.policy))
    calibration = _calibration(cascade)
    found = {}
    for name in policy.engines.keys() & facts.keys():
        why = suspended(policy, calibration, name, facts[name].digest)
        if why is not None:
            _LOG.warning("the promise about %s is suspended: %s", name, why)
        found[name] = Promised(floors_of(policy, name), why, policy.claim)
    return found


def refuse_unfit(settings: Settings) -> None:
    """Read and judge what `[cascade]` names and weighs, as a start does, but without engines.

    Raises:
        ConfigError: see `promises` and `new_plans`.
    """
    promises(settings.cascade, {})
    _calibration(settings.cascade)
    for section in settings.models.values():
        _rules(settings, section)


def new_plans(
    settings: Settings,
    readers: Mapping[str, Reader],
    facts: Mapping[str, Facts],
    promised: Mapping[str, Promised],
) -> dict[str, Plan]:
    """Model name or alias → its plan; aliases share that of their model.

    Raises:
        ConfigError: the calibration cannot be read, or wrong answers have a price and a better
            engine has none.
    """
    calibration = _calibration(settings.cascade)
    tiers = {
        name: _tier(settings.cascade, reader, facts[name], calibration, promised.get(name))
        for name, reader in readers.items()
    }
    plans: dict[str, Plan] = {}
    for name, section in settings.models.items():
        mode, prices = section.mode or settings.cascade.mode, engine_prices(settings.prices)
        own, rules = tuple(tiers[one] for one in section.engines), _rules(settings, section)
        plan = Plan(name, own, mode=mode, rules=rules, prices=prices)
        plans |= dict.fromkeys((name, *section.aliases), plan)
    return plans


def _calibration(cascade: CascadeSection) -> CalibrationFile | None:
    return load_calibration(Path(cascade.calibration)) if cascade.calibration else None


def _rules(settings: Settings, section: ModelSection) -> Rules:
    """How the model's cascade escalates; wrong answers are weighed against prices that are there.

    Raises:
        ConfigError: a better engine has none.
    """
    cascade = settings.cascade
    cost = cascade.cost_of_error if section.cost_of_error is None else section.cost_of_error
    if cost is not None or cascade.cost_of_error_by_key:
        missing = engine_prices(settings.prices).unpriced(section.engines[1:], time.time())
        if missing:
            raise ConfigError(
                f"cost_of_error weighs wrong answers against prices, but the engine "
                f"'{missing[0]}' has none; write [[prices.engines.{missing[0]}]]"
            )
    return Rules(
        cascade.max_escalation_share,
        cascade.escalation_window,
        cascade.on_cap,
        cascade.on_exhausted,
        cascade.on_unavailable,
        cost,
        cascade.cost_of_error_by_key,
    )


def _tier(
    cascade: CascadeSection,
    reader: Reader,
    facts: Facts,
    calibration: CalibrationFile | None,
    promised: Promised | None,
) -> Tier:
    name = reader.name
    floors, no_floor = _configured(cascade, name), "no_promise"
    if promised is not None and promised.suspended is None:
        floors = promised.floors
    elif promised is not None and cascade.on_suspended == "escalate":
        floors, no_floor = Floors(), "suspended"
    return Tier(
        reader,
        gate_of(cascade, name, facts),
        _calibrations(calibration, name, facts.digest),
        facts.native_confidence,
        facts.joint,
        facts.digest,
        floors,
        no_floor,
        appetite=facts.appetite,
    )


def _configured(cascade: CascadeSection, engine: str) -> Floors:
    own = cascade.floors.get(engine, {})
    cells = {what: floor for what, floor in own.items() if what in CELLS or what in _KINDS}
    questions = {
        what: floor for what, floor in own.items() if what not in cells and what != OTHERWISE
    }
    return Floors(own.get(OTHERWISE, cascade.default_floor), cells, questions)


def gate_of(cascade: CascadeSection, engine: str, facts: Facts) -> Gate:
    """What never reaches an engine that has a better one above it."""
    own = cascade.gates.get(engine)
    if own is None:
        return Gate(images=facts.images, not_competent=facts.not_competent)
    languages = None if own.languages is None else frozenset(own.languages)
    return Gate(
        facts.images, languages, own.max_options, facts.not_competent, frozenset(own.known_bad)
    )


def _calibrations(calibration: CalibrationFile | None, engine: str, digest: str) -> Calibrations:
    """Those of the engine that was measured; another one's say nothing about this."""
    known = None if calibration is None else calibration.engines.get(engine)
    if calibration is None or known is None:
        return AS_IT_IS
    if known.digest != digest:
        _LOG.warning("the calibration of %s is for other weights and is not used", engine)
        return AS_IT_IS
    return calibrations_of(calibration, engine)
