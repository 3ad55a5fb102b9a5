"""New promises stand beside old ones that still hold, and never beside those that do not."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.atomic import write_whole
from gateway.config_file import ConfigError
from gateway.fitting.promising import Change, promised
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    PolicyFile,
    Promise,
    calibration_digest,
    calibration_text,
    load_calibration,
    load_policy,
    policy_text,
    suspended,
)
from policies.calibration import Calibration
from policies.certify import Certificate

ONE, TWO = "1" * 16, "2" * 16
CERTIFICATE = Certificate(0.8, 300, 250, 3, 0.01, 0.83, 0.1, "one sequence from 45 answers", None)
NEW = PolicyFile("2026-12-01T00:00:00Z", 0.05, 0.1, "labels", False, {}, ())


def change(mark: str, before: str | None, after: str) -> Change:
    return Change("fitted", before, after, {mark: ("topic", CERTIFICATE)})


def test_a_first_promise_makes_files_that_hold(tmp_path: Path) -> None:
    policy, calibration = promised(None, NEW, None, change(ONE, None, "digest"))

    write_whole(tmp_path / "policy.toml", policy_text(policy))
    write_whole(tmp_path / "calibration.json", calibration_text(calibration))
    back, scales = (
        load_policy(tmp_path / "policy.toml"),
        load_calibration(tmp_path / "calibration.json"),
    )
    assert suspended(back, scales, "fitted", "digest") is None
    assert [(one.question, one.floor, one.name) for one in back.floors] == [(ONE, 0.8, "topic")]


def test_another_head_leaves_the_promises_that_held() -> None:
    policy, calibration = promised(None, NEW, None, change(ONE, None, "first"))

    policy, calibration = promised(policy, NEW, calibration, change(TWO, "first", "second"))

    assert [one.question for one in policy.floors] == [ONE, TWO]
    assert suspended(policy, calibration, "fitted", "second") is None
    assert suspended(policy, calibration, "fitted", "first") is not None


def test_a_head_that_is_fitted_again_replaces_its_promise() -> None:
    policy, calibration = promised(None, NEW, None, change(ONE, None, "first"))
    worse = Change("fitted", "first", "second", {ONE: ("topic", None)})

    policy, _ = promised(policy, NEW, calibration, worse)

    (floor,) = policy.floors
    assert not floor.promised
    assert floor.floor is None
    assert "nothing was kept back" in floor.start_rule


def test_promises_that_did_not_hold_are_not_brought_back_to_life() -> None:
    policy, calibration = promised(None, NEW, None, change(ONE, None, "first"))

    policy, _ = promised(policy, NEW, calibration, change(TWO, "somebody moved files", "second"))

    assert [one.question for one in policy.floors] == [TWO]


def test_other_engines_keep_what_is_theirs() -> None:
    scales = EngineCalibration("other digest", {"noul": Calibration(0.5)})
    other = Promise("starter", True, 100, 0.1, cell="noul", floor=0.9)
    bound = Bound("other digest", calibration_digest(scales))
    old = replace(NEW, engines={"starter": bound}, floors=(other,))

    policy, calibration = promised(
        old, NEW, CalibrationFile({"starter": scales}), change(ONE, None, "digest")
    )

    assert policy.floors[0] == other
    assert suspended(policy, calibration, "starter", "other digest") is None
    assert suspended(policy, calibration, "fitted", "digest") is None
    assert not policy.joint


def test_a_policy_that_promises_something_else_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"promises a risk of 0\.1 by labels.*--risk 0\.1"):
        promised(replace(NEW, risk=0.1), NEW, None, change(ONE, None, "digest"))
