"""What an alarm does, who raises it, and how it ends."""

import logging
from contextlib import closing
from pathlib import Path

import pytest

from engines.contract import Noul
from gateway.cli import main
from gateway.config_prices import engine_prices
from gateway.ledger.calendar import Calendar
from gateway.ledger.decisions import Alarm
from gateway.ledger.sqlite import SqliteStore
from gateway.trials import TrialTerms
from gateway.vigil import Accounts
from policies.cells import fingerprint
from tests.gateway.watched import TEAM, URGENT, pair, running, watched_settings


async def test_a_broken_promise_demotes_and_a_restart_does_not_forget_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = watched_settings(tmp_path)
    with caplog.at_level(logging.ERROR, "tiergate"):
        async with running(settings, pair(0, 1)) as gateway:
            reasons = []
            for number in range(12):
                answer = await gateway.ask(f"ticket {number}")
                reasons.append(answer["answers"]["team"]["x_reason"])
                await gateway.settled()

    assert reasons[0] == "confident"
    assert reasons[-1] == "demoted"
    assert "disagrees with small about choice:2" in caplog.text
    async with running(settings, pair(0, 1)) as restarted:
        answer = await restarted.ask("after a restart", team=TEAM, urgent=URGENT)
    assert answer["answers"]["team"]["x_reason"] == "demoted"
    assert answer["answers"]["team"]["x_engine"] == "large"
    assert answer["answers"]["urgent"]["x_reason"] == "confident", "another cell"


async def test_a_promise_that_is_kept_raises_no_alarm(tmp_path: Path) -> None:
    async with running(watched_settings(tmp_path), pair(1, 1)) as gateway:
        for number in range(40):
            await gateway.ask(f"ticket {number}")
        await gateway.settled()

        with closing(SqliteStore(gateway.settings.ledger.path)) as store:
            (trial,) = store.every_trial()
            assert store.alarms() == []
    assert (trial.evidence.seen, trial.evidence.wrong) == (40, 0)
    assert trial.evidence.against < 1


async def test_a_cleared_alarm_ends_the_demotion_and_begins_the_test_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = watched_settings(tmp_path)
    config = tmp_path / "config.toml"
    config.write_text(f'[ledger]\npath = "{settings.ledger.path}"\n')
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.raise_alarm(Alarm("disagreement", "small", "choice:2", "They disagree.", 5.0))
    assert main(["alarms", "--config", str(config)]) == 3
    assert "They disagree." in capsys.readouterr().out

    async with running(settings, pair()) as gateway:
        before = await gateway.ask()
        assert main(["alarms", "clear", "1", "--config", str(config)]) == 0
        assert gateway.services.vigil is not None
        gateway.services.vigil.obey()
        after = await gateway.ask("again")

    assert before["answers"]["team"]["x_reason"] == "demoted"
    assert after["answers"]["team"]["x_reason"] == "confident"
    assert main(["alarms", "--config", str(config)]) == 0
    assert main(["alarms", "clear", "1", "--config", str(config)]) == 2
    assert main(["alarms", "clear", "--config", str(config)]) == 2


async def test_a_floor_of_a_questions_own_is_tested_on_its_own(tmp_path: Path) -> None:
    mark = fingerprint(Noul("Is it urgent?"))
    settings = watched_settings(tmp_path, cascade={"floors": {"small": {mark: 0.5}}})
    async with running(settings, pair()) as gateway:
        await gateway.ask(urgent=URGENT, other={"type": "noul", "instructions": "Is it?"})
        await gateway.settled()

        with closing(SqliteStore(settings.ledger.path)) as store:
            assert {one.what for one in store.every_trial()} == {mark, "noul"}


async def test_without_a_promise_nothing_is_tested_but_all_is_written_down(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path, most_disagreement=0.0)
    async with running(settings, pair(0, 1)) as gateway:
        for number in range(10):
            await gateway.ask(f"ticket {number}")
        await gateway.settled()

        assert [one.shadow is not None for one in gateway.logged()] == [True] * 10
        with closing(SqliteStore(settings.ledger.path)) as store:
            assert (store.every_trial(), store.alarms()) == ([], [])


async def test_another_model_than_last_time_is_an_alarm(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.engine_seen("small", "what-it-was", 1.0)

    for _ in range(2):
        async with running(settings, pair()):
            pass

    with closing(SqliteStore(settings.ledger.path)) as store:
        (alarm,) = store.alarms()
    assert (alarm.kind, alarm.engine) == ("model_changed", "small")


async def test_new_plans_are_demoted_before_the_ledger_is_read_again(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.raise_alarm(Alarm("disagreement", "small", "choice:2", "They disagree.", 5.0))

    async with running(settings, pair()) as gateway:
        vigil = gateway.services.vigil
        assert vigil is not None
        (plan,) = set(gateway.services.plans.values())
        plan.demote_exactly({})
        accounts = Accounts(engine_prices(settings.prices), Calendar())
        vigil.watch({plan}, TrialTerms({}, 0.01), accounts)

        assert plan.tiers[0].demoted == {"choice:2"}
