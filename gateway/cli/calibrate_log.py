"""`tiergate calibrate --log`: floors from the agreement of two engines, as a gateway logged it."""

import argparse
import time
from pathlib import Path

from gateway.calibrating.certifying import Terms
from gateway.calibrating.curves import Cost
from gateway.calibrating.findings import Findings
from gateway.calibrating.logged import Logs, Pair, findings_of, pairs
from gateway.cli.logged import moment, open_log
from gateway.cli.waiting import told_when_slow
from gateway.config import Settings
from gateway.config_file import ConfigError
from gateway.ledger.decisions import Period
from gateway.policy_file import CalibrationFile, EngineCalibration, load_calibration
from gateway.wiring_engines import open_lanes


def model_of(settings: Settings, wanted: str | None) -> tuple[str, str, str]:
    """The model, and its small and its large engine.

    Raises:
        ConfigError: there is no such model, or it has other than two engines.
    """
    named = settings.default_model if wanted is None else wanted
    for name, section in settings.models.items():
        if named == name or named in section.aliases:
            if len(section.engines) != 2:
                raise ConfigError(
                    f"--log compares the two engines of a model, and '{name}' has "
                    f"{len(section.engines)}; calibrate it from rows"
                )
            return name, section.engines[0], section.engines[1]
    raise ConfigError(f"there is no model '{named}'; there are: {', '.join(settings.models)}")


def found_in_log(
    chosen: argparse.Namespace, settings: Settings, terms: Terms, cost: tuple[Cost, str], at: str
) -> Findings:
    """Floors and what the report shows, from the decisions of one model.

    Raises:
        ConfigError: there is no ledger, or no question that both engines read.
        CannotStart: the ledger cannot be read, or the small engine cannot be loaded.
    """
    model, small, large = model_of(settings, chosen.model)
    known = _known(settings)
    since_s, found = _pairs(settings, moment(chosen.since, time.time()), model, (small, large))
    if not found:
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(since_s))
        raise ConfigError(
            f"since {when} UTC no question of '{model}' was read by both engines; give watch."
            'shadow_share a share, or the model mode = "shadow", and wait'
        )
    engines = {small: settings.engines[small]}
    only = settings.model_copy(update={"engines": engines})
    with told_when_slow() as told, open_lanes(only, told) as lanes:
        digest = lanes[small].engine.facts.digest
    if small not in known or known[small].digest != digest:
        known = known | {small: EngineCalibration(digest)}
    calibration = CalibrationFile(known)
    logs = Logs(small, large, digest, calibration, terms, *cost, at)
    return findings_of(found, logs)


def _known(settings: Settings) -> dict[str, EngineCalibration]:
    """Engine → its calibration in the configured file."""
    if not settings.cascade.calibration:
        return {}
    return dict(load_calibration(Path(settings.cascade.calibration)).engines)


def _pairs(
    settings: Settings, since_s: float, model: str, engines: tuple[str, str]
) -> tuple[float, list[Pair]]:
    """From when on, and the pairs: no decision of other weights or of another calibration."""
    if settings.cascade.calibration:
        path = Path(settings.cascade.calibration)
        since_s = max(since_s, path.stat().st_mtime if path.exists() else 0.0)
    with open_log(settings) as log:
        changed = [at_s for name, _, at_s in log.engine_changes(since_s) if name in engines]
        since_s = max([since_s, *changed])
        return since_s, pairs(log.decisions(Period(since_s, model=model)), *engines)
