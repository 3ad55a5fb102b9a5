"""What was promised survives the files it is written to, and falls with what it is bound to."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.atomic import write_whole
from gateway.config_file import ConfigError
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    PolicyFile,
    Promise,
    calibration_digest,
    calibration_text,
    calibrations_of,
    floors_of,
    load_calibration,
    load_policy,
    policy_text,
    suspended,
)
from policies.calibration import Calibration
from policies.cascade import NEVER

MEASURED = EngineCalibration(
    "d1", {"choice:11+": Calibration(0.8, ((0.3, 0.2), (1.0, 0.97)))}, {"0" * 16: Calibration(2.5)}
)
CALIBRATION = CalibrationFile({"small": MEASURED})
KEPT = Promise("small", True, 400, 0.05, cell="choice:11+", floor=0.91, accepted=120, errors=2)
SILENT = Promise("small", False, 30, 0.05, question="a" * 16, name="spam", needs=64)
POLICY = PolicyFile(
    created="2026-11-30T12:00:00Z",
    risk=0.05,
    delta=0.1,
    mode="labels",
    joint=True,
    engines={"small": Bound("d1", calibration_digest(MEASURED))},
    floors=(KEPT, SILENT),
)


def test_both_files_read_back_what_was_written(tmp_path: Path) -> None:
    policy, calibration = tmp_path / "policy.toml", tmp_path / "calibration.json"

    write_whole(policy, policy_text(POLICY))
    write_whole(calibration, calibration_text(CALIBRATION))

    assert load_policy(policy) == POLICY
    assert load_calibration(calibration) == CALIBRATION
    assert sorted(path.name for path in tmp_path.iterdir()) == [calibration.name, policy.name]


@given(st.text(max_size=20), st.floats(0, 1))
def test_any_name_and_any_floor_read_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, floor: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "policy.toml"
    kept = replace(KEPT, name=name, floor=floor)
    write_whole(path, policy_text(replace(POLICY, floors=(kept,))))

    (read,) = load_policy(path).floors

    assert read.floor == floor
    assert read.name == name.encode("utf-8", "replace").decode()


def test_what_is_not_promised_is_never_kept() -> None:
    floors = floors_of(POLICY, "small")

    assert floors.of("choice:11+", "b" * 16) == 0.91
    assert floors.of("choice:11+", "a" * 16) == NEVER
    assert floors.of("noul", "b" * 16) == NEVER
    assert floors_of(POLICY, "other").of("choice:11+", "b" * 16) == NEVER


def test_calibrations_are_those_of_the_engine() -> None:
    assert calibrations_of(CALIBRATION, "small").of("choice:11+", "").temperature == 0.8
    assert calibrations_of(CALIBRATION, "small").of("choice:11+", "0" * 16).temperature == 2.5
    assert calibrations_of(CALIBRATION, "other").of("choice:11+", "").temperature == 1.0


def test_a_promise_holds_for_what_was_measured_and_for_nothing_else() -> None:
    changed = CalibrationFile({"small": replace(MEASURED, cells={})})
    foreign = CalibrationFile({"small": replace(MEASURED, digest="d2")})

    assert suspended(POLICY, CALIBRATION, "small", "d1") is None
    assert "weights" in str(suspended(POLICY, CALIBRATION, "small", "d2"))
    assert "missing" in str(suspended(POLICY, None, "small", "d1"))
    assert "missing" in str(suspended(POLICY, CalibrationFile({}), "small", "d1"))
    assert "other weights" in str(suspended(POLICY, foreign, "small", "d1"))
    assert "not the one" in str(suspended(POLICY, changed, "small", "d1"))
    assert "does not know" in str(suspended(POLICY, CALIBRATION, "large", "d1"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("risk = 0.05", "rsk = 0.05", [":4: rsk", "no such key"]),
        ("risk = 0.05", "risk = 0.0", [":4: risk", "between 0 and 1"]),
        ("delta = 0.1\n", "delta = nan\n", [":5: delta", "finite"]),
        ("version = 1", "version = 2", [":2: version", "calibrate again"]),
        ("floor = 0.91", "floor = 1.5", [":17: floors.0.floor", "not a probability"]),
        ("floor = 0.91", 'floor = "high"', [":17: floors.0.floor", "number"]),
        ("floor = 0.91\n", "", [":16: floors.0.promised", "has a floor"]),
        ("accepted = 120", "accepted = 401", [":20: floors.0.errors", "some of the labels"]),
        ("errors = 2", "errors = 121", [":20: floors.0.errors", "some of the accepted"]),
        ("errors = 2", "errors = -1", [":20: floors.0.errors", "some of the accepted"]),
        ("coverage = 0.0", "coverage = 1e9", [":21: floors.0.coverage", "not a probability"]),
        ('cell = "choice:11+"', 'cell = "choice:many"', [":15: floors.0.cell", "no such cell"]),
        ('cell = "choice:11+"\n', "", [":13: floors.0", "give one of them"]),
        ('engine = "small"', 'engine = "smal"', [":14: floors.0.engine", "engines.smal"]),
        ('question = "aaaa', 'question = "spam', [":27: floors.1.question", "fingerprint"]),
        ("errors = 2", f"errors = 0x{'f' * 5000}", [":20: floors.0.errors", "64 bits"]),
        ("[[floors]]", "[[floors", ["not valid TOML", "line 13"]),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_line_and_key(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    path = tmp_path / "policy.toml"
    text = policy_text(POLICY)
    assert old in text
    path.write_text(text.replace(old, new, 1))

    with pytest.raises(ConfigError) as refused:
        load_policy(path)

    for word in (str(path), *words):
        assert word in str(refused.value)


def test_two_floors_for_the_same_answers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    write_whole(path, policy_text(replace(POLICY, floors=(KEPT, KEPT))))

    with pytest.raises(ConfigError, match=r"floors\.1: there is a floor for the same"):
        load_policy(path)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ({"temperature": 0}, "must be positive"),
        ({"temperature": 1, "knots": [[0.5, 0.5]]}, "at least two"),
        ({"temperature": 1, "knots": [[0.5, 0.5], [0.5, 0.6]]}, "do not rise"),
        ({"temperature": 1, "knots": [[0.5, 0.5], [0.6, 0.4]]}, "do not rise"),
        ({"temperature": 1, "knots": [[0.5, 0.5], [0.6, 1.4]]}, "not in"),
        ({"temperature": 1, "knots": [[0.5, 0.5, 1]]}, "knots.0"),
        ({"temperature": "hot"}, "temperature"),
        ({"heat": 1}, "no such key"),
    ],
)
def test_a_calibration_that_cannot_be_is_refused_with_its_key(
    tmp_path: Path, scale: object, words: str
) -> None:
    path = tmp_path / "calibration.json"
    engines = {"small": {"digest": "d1", "cells": {"noul": scale}}}
    path.write_text(json.dumps({"version": 1, "engines": engines}, indent=1))

    with pytest.raises(ConfigError) as refused:
        load_calibration(path)

    place, key, *_ = str(refused.value).removeprefix(f"{path}:").split(": ")
    assert int(place) in (7, 8, 9, 10), "somewhere in the entry of the cell"
    assert key.startswith("engines.small.cells.noul")
    assert words in str(refused.value)


def test_a_fault_in_a_calibration_has_the_line_of_its_own_value(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    write_whole(path, calibration_text(CALIBRATION))
    text = path.read_text()
    line = text.split("\n").index('     "temperature": 2.5,') + 1
    path.write_text(text.replace("2.5", '"hot"'))

    with pytest.raises(ConfigError, match=rf"json:{line}: engines\.small\.questions\.0+\.temper"):
        load_calibration(path)


def test_a_policy_that_is_no_file_is_refused_before_anybody_waits_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "policy.toml"
    os.mkfifo(pipe)

    for read in (load_policy, load_calibration):
        with pytest.raises(ConfigError, match=f"{pipe}: cannot be read: it is a pipe, not a file"):
            read(pipe)
        with pytest.raises(ConfigError, match="it is a directory"):
            read(tmp_path)


def test_files_that_are_no_such_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"

    with pytest.raises(ConfigError, match="cannot be read"):
        load_policy(tmp_path / "none.toml")
    for text, words in (("[]", "object"), ("{", "not valid JSON"), ('{"version": 2}', "engines")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=words):
            load_calibration(path)


def test_a_policy_says_in_a_sentence_what_it_promises() -> None:
    alone = replace(POLICY, joint=False, mode="agreement", risk=0.025)

    assert POLICY.claim == (
        "Of the answers that are kept, at most 5\u202f% are wrong; this holds for all floors "
        "together with 90\u202f% certainty."
    )
    assert "2.50% are not those of the last engine" in alone.claim
    assert "for each floor" in alone.claim


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_policy(Path("policy\0.toml"))
