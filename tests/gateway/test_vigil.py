"""What is promised, what is compared in the background, what a joint engine is asked."""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Facts, Inquiry
from engines.scripted import ScriptedEngine
from gateway.atomic import write_whole
from gateway.ledger.decisions import Glance
from gateway.ledger.sqlite import SqliteStore
from gateway.plan import Promised
from gateway.policy_file import Bound, Mode, PolicyFile, Promise, policy_text
from gateway.wiring_watch import allowed_disagreement
from policies.cascade import Floors
from tests.gateway.ledger.decided import decided
from tests.gateway.watched import TEAM, running, says, watched_settings

DAY_S = 86_400.0


async def promised(
    folder: Path, mode: Mode = "agreement", suspended: str | None = None, **watch: Any
) -> dict[str, float]:
    """Engine → what may disagree, under a policy with a risk of 0.05."""
    bound = {"small": Bound("d", "c")}
    floors = (Promise("small", promised=True, labels=99, delta=0.1, cell="noul", floor=0.8),)
    policy = PolicyFile("2026-12-01", 0.05, 0.1, mode, joint=False, engines=bound, floors=floors)
    write_whole(folder / "policy.toml", policy_text(policy))
    settings = watched_settings(folder, **({"most_disagreement": 0.0} | watch))
    async with running(settings, {"small": says(0), "large": says(0)}) as gateway:
        gateway.services.promises = {"small": Promised(Floors(0.8), suspended)}
        section = settings.cascade.model_copy(update={"policy": str(folder / "policy.toml")})
        with_policy = settings.model_copy(update={"cascade": section})
        plans = set(gateway.services.plans.values())
        return allowed_disagreement(with_policy, gateway.services, plans)


async def test_a_policy_certified_by_agreement_promises_its_risk(tmp_path: Path) -> None:
    assert await promised(tmp_path) == {"small": 0.05}


async def test_one_certified_with_labels_promises_no_more_than_both_engines_errors(
    tmp_path: Path,
) -> None:
    found = await promised(tmp_path, "labels", last_engine_error=0.1)

    assert found == {"small": pytest.approx(0.15)}


async def test_a_promise_that_is_suspended_is_not_tested(tmp_path: Path) -> None:
    assert await promised(tmp_path, suspended="other weights") == {}


async def test_the_configuration_may_promise_by_itself(tmp_path: Path) -> None:
    found = await promised(tmp_path, suspended="other weights", most_disagreement=0.2)

    assert found == {"small": 0.2}


async def test_other_traffic_than_before_is_an_alarm_once(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    now_s = time.time()
    rows = [
        decided(
            decision_id=number,
            at_s=now_s - (3 * DAY_S if number < 300 else 60),
            looks=(Glance("small", 5, p := (0.9 if number < 300 else 0.6), (p, 1 - p)),),
            tier=1 if number < 300 else 2,
        )
        for number in range(500)
    ]
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.log_decisions(rows, [])

    async with running(settings, {"small": says(0), "large": says(0)}) as gateway:
        vigil = gateway.services.vigil
        assert vigil is not None
        await vigil.compare()
        await vigil.compare()
        vigil.obey()

        assert {(one.kind, one.what) for one in vigil.alarms} == {
            ("drift", "choice:2 escalation"),
            ("drift", "choice:2 likelihood"),
        }
        answer = await gateway.ask()
    assert answer["answers"]["team"]["x_reason"] == "confident", "drift demotes nobody"


async def test_the_same_traffic_as_before_is_no_alarm(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    now_s = time.time()
    rows = [
        decided(decision_id=number, at_s=now_s - (3 * DAY_S if number % 2 else 60))
        for number in range(400)
    ]
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.log_decisions(rows, [])

    async with running(settings, {"small": says(0), "large": says(0)}) as gateway:
        assert gateway.services.vigil is not None
        await gateway.services.vigil.compare()

        with closing(SqliteStore(settings.ledger.path)) as store:
            assert store.alarms() == []


class Joint(ScriptedEngine):
    """Reads all questions of an inquiry together."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[set[str]] = []

    @property
    def facts(self) -> Facts:
        return replace(super().facts, joint=True)

    def prepare(self, inquiry: Inquiry) -> Any:
        self.asked.append(set(inquiry.questions))
        return super().prepare(inquiry)


async def test_an_engine_that_reads_questions_together_is_given_all_of_them(
    tmp_path: Path,
) -> None:
    joint = Joint()
    urgent = {"type": "noul", "instructions": "Is it urgent?"}
    settings = watched_settings(tmp_path, shadow_share=0.5)
    async with running(settings, {"small": says(0), "large": joint}) as gateway:
        for number in range(12):
            await gateway.ask(f"ticket {number}", team=TEAM, urgent=urgent)
        await gateway.settled()

        rows = gateway.logged()
    assert joint.asked
    assert all(asked == {"team", "urgent"} for asked in joint.asked)
    assert [one.shadow is not None for one in rows] == [one.drawn for one in rows]
