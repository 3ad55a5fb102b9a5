"""`tiergate audit`, `replay` and `drift` on a ledger with decisions in it."""

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Noul
from gateway.atomic import write_whole
from gateway.cli import main
from gateway.ledger.decisions import Alarm, Glance, Logged, Trial
from gateway.ledger.sqlite import SqliteStore
from gateway.policy_file import Bound, PolicyFile, Promise, policy_text
from policies.cells import fingerprint
from policies.sequential import Evidence, after
from tests.gateway.ledger.decided import LARGE, decided

CONFIG = """
default_model = "cascade"
[engines.small]
kind = "scripted"
[engines.large]
kind = "scripted"
[models.cascade]
tiers = ["small", "large"]
[[prices.engines.small]]
effective = 2026-01-01
usd_per_million_tokens = 0.001
[[prices.engines.large]]
effective = 2026-01-01
usd_per_million_tokens = 0.05
[ledger]
path = "{path}"
"""
DAY_S = 86_400.0
MARK = fingerprint(Noul("Is it urgent?"))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def config(tmp_path: Path, path: str) -> str:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(path=path))
    return str(file)


def small(p: float) -> Glance:
    return Glance("small", 10, p, (p, round(1 - p, 6)))


def fill(path: str, *groups: tuple[int, dict[str, Any]]) -> None:
    """So many decisions of each group, a minute ago unless they say when."""
    rows: list[Logged] = []
    for count, changes in groups:
        for _ in range(count):
            usual = {"decision_id": len(rows) + 1, "at_s": time.time() - 60}
            rows.append(decided(**(usual | changes)))
    with closing(SqliteStore(path)) as store:
        store.log_decisions(rows, [])


UP: dict[str, Any] = {
    "tier": 2,
    "engine": "large",
    "reason": "low_confidence",
    "looks": (small(0.6), LARGE),
    "kind": "noul",
    "fingerprint": MARK,
}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_audit_says_what_was_fixed_and_broken_and_names_the_question(
    config: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (12, UP | {"truth": 1}), (16, UP | {"truth": 0}), (5, UP), (7, {"truth": 0}))
    questions = tmp_path / "q.json"
    questions.write_text('{"urgent": {"type": "noul", "instructions": "Is it urgent?"}}')

    code, found = printed(capsys, "audit", "--config", config, "--questions", str(questions))
    assert main(["audit", "--config", config, "--questions", str(questions)]) == 0

    first, second = found
    assert code == 0
    assert (first["name"], first["fixed"], first["broken"], first["known"]) == (
        "urgent",
        12,
        16,
        28,
    )
    assert first["p_value"] == pytest.approx(0.572, abs=1e-3)
    assert first["says"].startswith("No evidence that escalating `urgent` helps: 12 fixed")
    assert first["cost"] == pytest.approx(33 * 30 * 50e-9)
    assert second["kept"]["told"] == 7
    assert "No evidence that escalating `urgent`" in capsys.readouterr().out


def test_an_escalation_that_harms_is_exit_code_1(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (20, UP | {"truth": 0}))

    code, (found,) = printed(capsys, "audit", "--config", config)

    assert (code, found["verdict"], found["cost_per_fix"]) == (1, "harms", None)


def test_a_floor_is_replayed_with_intervals_unknowns_and_costs(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (60, {"looks": (small(0.9),)}), (40, UP))

    code, found = printed(capsys, "replay", "--config", config, "--floor", "0.95")
    assert main(["replay", "--config", config, "--floor", "0.95"]) == 0

    logged, other = found["cascade"]["logged"], found["cascade"]["replayed"]
    assert code == 0
    assert logged["escalated"]["share"] == 0.4
    assert other["escalated"]["share"] == 1.0
    assert other["estimated_tokens"] == {"large": 60 * 30}
    assert other["tokens"] == {"small": 1000, "large": 40 * 30}
    assert logged["agreement"]["unknown"] == 60
    low, high = logged["escalated"]["interval"]
    assert low < 0.4 < high
    assert float(other["cost"]) > float(logged["cost"]) > 0
    assert "as logged" in capsys.readouterr().out


def test_a_policy_file_is_replayed(
    config: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (60, {"looks": (small(0.9),)}), (40, UP))
    policy = PolicyFile(
        created="2026-12-01T00:00:00Z",
        risk=0.1,
        delta=0.1,
        mode="agreement",
        joint=False,
        engines={"small": Bound("d", "c")},
        floors=(Promise("small", promised=True, labels=99, delta=0.1, cell="noul", floor=0.55),),
    )
    write_whole(tmp_path / "new.toml", policy_text(policy))

    _, found = printed(capsys, "replay", "--config", config, "--policy", str(tmp_path / "new.toml"))

    assert found["cascade"]["replayed"]["escalated"]["share"] == 0.6, "choices have no promise"
    assert found["cascade"]["replayed"]["agreement"]["share"] == 0.0
    assert found["cascade"]["replayed"]["agreement"]["unknown"] == 0


def test_another_calibration_moves_what_is_kept(
    config: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (50, {"looks": (small(0.9),)}))
    flat = {"digest": "d", "cells": {"choice:2": {"temperature": 2.0, "knots": []}}}
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps({"version": 1, "engines": {"small": flat | {"questions": {}}}}))

    arguments = ("replay", "--config", config, "--floor", "0.8")
    _, plain = printed(capsys, *arguments)
    _, calibrated = printed(capsys, *arguments, "--calibration", str(file))

    assert plain["cascade"]["replayed"]["escalated"]["share"] == 0.0
    assert calibrated["cascade"]["replayed"]["escalated"]["share"] == 1.0  # 0.9 becomes 0.75


def test_drift_is_exit_code_3_while_something_needs_a_person(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {"at_s": time.time() - 10 * DAY_S, "looks": (small(0.9),)}
    fill(path, (200, before), (200, {"looks": (small(0.9),)}))
    assert printed(capsys, "drift", "--config", config)[0] == 0

    with closing(SqliteStore(path)) as store:
        evidence = after(Evidence(0.1), wrong=True)
        store.keep_trial(Trial("small", "choice:2", "d", 5.0, evidence))
        store.raise_alarm(Alarm("disagreement", "small", "choice:2", "They disagree.", 5.0))
    code, found = printed(capsys, "drift", "--config", config)
    assert main(["drift", "--config", config]) == 3

    said = capsys.readouterr().out
    assert code == 3
    assert found["alarms"][0]["message"] == "They disagree."
    assert found["promises"][0]["disagreed"] == 1
    assert found["drift"][0]["likelihood"]["verdict"] == "stable"
    assert "disagreed with 1 of 1 kept answers" in said


def test_another_population_and_another_model_are_told(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old = time.time() - 10 * DAY_S
    spread = [(20, {"at_s": old, "looks": (small(0.5 + n / 25),)}) for n in range(10)]
    fill(path, *spread, (200, {"looks": (small(0.51),)}))
    with closing(SqliteStore(path)) as store:
        store.engine_seen("small", "before", old)
        store.engine_seen("small", "after", time.time() - 60)

    code, found = printed(capsys, "drift", "--config", config)

    assert code == 3
    assert found["drift"][0]["likelihood"]["verdict"] == "changed"
    assert found["model_changes"][0]["digest"] == "after"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["audit", "--since", "soon"], "'soon' is no time"),
        (["drift", "--since", "40d"], "does not begin before"),
        (["audit", "--since", "9999-12-31"], "9999-12-31 is still to come"),
        (["audit", "--model", "cascad"], "no model 'cascad', nor a decision of it; there are: ca"),
        (["drift", "--model", "cascad"], "no model 'cascad'"),
        (["replay", "--floor", "0.5", "--model", "small"], "no model 'small' with several tiers"),
        (["replay", "--policy", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_what_cannot_be_asked_is_exit_code_2(
    config: str, path: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path)

    assert main([*arguments, "--config", config]) == 2
    assert words in capsys.readouterr().err


def test_without_a_ledger_there_is_nothing_to_read(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.toml"
    bare.write_text(
        'default_model = "m"\n[engines.e]\nkind = "scripted"\n[models.m]\nengine = "e"\n'
    )

    assert main(["audit", "--config", str(bare)]) == 2
    assert main(["alarms", "--config", config]) == 4
    assert "no ledger yet" in capsys.readouterr().err


@pytest.mark.parametrize("floor", ["nan", "inf", "-inf", "-0.1", "1.1", "high", ""])
def test_a_floor_that_is_no_probability_is_a_usage_error_that_says_what_is_allowed(
    floor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["replay", f"--floor={floor}"])

    assert stopped.value.code == 2
    assert f"--floor: '{floor}' is not a number from 0 to 1" in capsys.readouterr().err


def test_decisions_are_found_by_an_alias_and_by_a_name_that_only_the_log_knows(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (20, UP | {"truth": 1}), (3, UP | {"model": "before"}))
    text = Path(config).read_text().replace("[models.cascade]", "[models.cascade]\naliases = ['c']")
    Path(config).write_text(text)

    _, (alias,) = printed(capsys, "audit", "--config", config, "--model", "c")
    _, (old,) = printed(capsys, "audit", "--config", config, "--model", "before")

    assert (alias["escalated"], old["escalated"]) == (20, 3)


def test_a_damaged_decision_is_told(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (3, UP))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE decisions SET looks = '{' WHERE decision_id = 2")

    assert main(["audit", "--config", config]) == 4
    assert "decision 2 is damaged" in capsys.readouterr().err


def test_a_ledger_that_is_no_file_is_told(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(path)

    for command in (["audit"], ["alarms", "clear", "--all"], ["keys", "list"]):
        assert main([*command, "--config", config]) == 4
        assert "it is no file" in capsys.readouterr().err
