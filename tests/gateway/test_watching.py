"""A cascade that is watched: what is written down, who is asked again, what an alarm does."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from engines.contract import Noul, Question, Text
from engines.scripted import ScriptedEngine
from gateway.config import Settings
from gateway.vigil import WATCH_KEY
from gateway.watching import Watcher
from policies.cells import fingerprint
from tests.gateway.watched import TEAM, URGENT, Running, pair, running, says, watched_settings


def figures(gateway: Running) -> tuple[int, int, int]:
    witness = gateway.services.witness
    assert isinstance(witness, Watcher)
    found = witness.opinions.figures
    return found.read, found.dropped, found.failed


def rows_of(settings: Settings, sql: str) -> list[Any]:
    with closing(sqlite3.connect(settings.ledger.path)) as connection:
        return connection.execute(sql).fetchall()


async def test_every_question_is_written_down_with_what_each_engine_made_of_it(
    tmp_path: Path,
) -> None:
    def small(_: Text, question: Question) -> list[float]:
        return [0.1, 0.0] if isinstance(question, Noul) else [9.0, 0.0]

    engines = {"small": ScriptedEngine(script=small), "large": says(1)}
    async with running(watched_settings(tmp_path, shadow_share=0.0), engines) as gateway:
        answer = await gateway.ask(team=TEAM, urgent=URGENT)
        await gateway.settled()

        team, urgent = gateway.logged()
    assert (team.tier, team.engine, team.reason) == (1, "small", "confident")
    assert (team.kind, team.labels, team.model) == ("choice", 2, "cascade")
    assert team.request_id == answer["id"]
    assert [look.engine for look in team.looks] == ["small"]
    assert list(team.looks[0].probabilities) == list(
        answer["answers"]["team"]["probabilities"].values()
    )
    assert (urgent.tier, urgent.engine, urgent.reason) == (2, "large", "low_confidence")
    assert [look.engine for look in urgent.looks] == ["small", "large"]
    assert urgent.fingerprint == fingerprint(Noul("Is it urgent?"))
    assert (team.sampling, team.drawn, team.shadow) == (0.0, False, None)


async def test_the_truth_of_an_answer_can_be_told(tmp_path: Path) -> None:
    async with running(watched_settings(tmp_path), pair()) as gateway:
        answer = await gateway.ask(team=TEAM, urgent=URGENT)
        outcomes = [
            {"request_id": answer["id"], "question": "team", "truth": "tech"},
            {"request_id": answer["id"], "question": "urgent", "truth": True},
        ]

        told = await gateway.client.post("/v1/outcomes", json={"outcomes": outcomes})

        assert told.status_code == 200, told.text
        assert [one.truth for one in gateway.logged()] == [1, 0]


async def test_no_text_of_a_request_reaches_the_file(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    question = {"type": "choice", "instructions": "privy?", "criteria": {"privy-a": "privy-b"}}
    async with running(settings, pair()) as gateway:
        await gateway.ask("privy-state", **{"privy-id": question})
        await gateway.settled()

    for file in tmp_path.iterdir():
        assert b"privy" not in file.read_bytes()


async def test_a_share_of_kept_answers_is_read_by_the_last_engine_too(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path, shadow_share=0.5, most_disagreement=0.0)
    engines = pair(0, 1)
    async with running(settings, engines) as gateway:
        for number in range(60):
            await gateway.ask(f"ticket {number}")
        await gateway.settled()

        rows = gateway.logged()
    drawn = [one for one in rows if one.drawn]
    assert {one.sampling for one in rows} == {0.5}
    assert 10 < len(drawn) < 50
    assert engines["large"].reads == len(drawn)
    assert [one.shadow is not None for one in rows] == [one.drawn for one in rows]
    assert {one.shadow.label for one in drawn if one.shadow} == {1}


async def test_second_opinions_are_charged_to_nobody_who_asked(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path)
    async with running(settings, pair()) as gateway:
        await gateway.ask(team=TEAM, urgent=URGENT)
        await gateway.settled()

    charges = rows_of(settings, "SELECT key_id, tokens, nouls + choices, status FROM charges")
    assert ("anonymous", 8, 2, 200) in charges
    assert (WATCH_KEY, 8, 0, 200) in charges


async def test_the_answer_does_not_wait_for_a_second_opinion(tmp_path: Path) -> None:
    hold = threading.Event()
    engines = {"small": says(0), "large": ScriptedEngine(hold=hold)}
    try:
        async with running(watched_settings(tmp_path), engines) as gateway:
            answers = [await gateway.ask(f"ticket {n}") for n in range(3)]

            assert [one["answers"]["team"]["x_engine"] for one in answers] == ["small"] * 3
            assert engines["large"].reads == 0
            hold.set()
            await gateway.settled()
            assert engines["large"].reads == 3
    finally:
        hold.set()


async def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(tmp_path: Path) -> None:
    hold = threading.Event()
    engines = {"small": says(0), "large": ScriptedEngine(hold=hold)}
    try:
        async with running(watched_settings(tmp_path, shadow_waiting=2), engines) as gateway:
            for number in range(6):
                await gateway.ask(f"ticket {number}")
            hold.set()
            await gateway.settled()

            read, dropped, failed = figures(gateway)
            assert (read + dropped, failed) == (6, 0)
            assert dropped >= 3
            assert sum(one.shadow is not None for one in gateway.logged()) == read
    finally:
        hold.set()


async def test_the_budget_of_the_day_is_kept_and_the_log_says_that_nobody_was_drawn(
    tmp_path: Path,
) -> None:
    settings = watched_settings(tmp_path, shadow_tokens_per_day=10)
    async with running(settings, pair()) as gateway:
        for number in range(5):
            await gateway.ask(f"a b c {number}")
            await gateway.settled()
        assert [one.sampling for one in gateway.logged()] == [1.0, 1.0, 0.0, 0.0, 0.0]
        assert figures(gateway) == (2, 0, 0)

    async with running(settings, pair()) as later:
        await later.ask("a b c d")
        await later.settled()
        assert later.logged()[-1].sampling == 0.0, "what was spent today is remembered"


async def test_what_the_last_engine_cannot_read_is_counted(tmp_path: Path) -> None:
    engines = {"small": says(0), "large": ScriptedEngine(max_tokens=1)}
    async with running(watched_settings(tmp_path), engines) as gateway:
        await gateway.ask("two words")
        await gateway.settled()

        assert figures(gateway) == (0, 0, 1)
        assert gateway.logged()[0].shadow is None


async def test_answers_that_are_no_promise_are_not_drawn(tmp_path: Path) -> None:
    capped = {"max_escalation_share": 0.0}
    async with running(watched_settings(tmp_path, cascade=capped), pair(sure=0.1)) as gateway:
        answer = await gateway.ask()
        await gateway.settled()

        assert answer["answers"]["team"]["x_reason"] == "cap_reached"
        assert [one.drawn for one in gateway.logged()] == [False]


async def test_in_shadow_mode_the_first_engine_is_asked_what_it_would_have_said(
    tmp_path: Path,
) -> None:
    async with running(watched_settings(tmp_path, mode="shadow"), pair(0, 1)) as gateway:
        answer = await gateway.ask()
        await gateway.settled()

        (row,) = gateway.logged()
    assert answer["answers"]["team"]["x_engine"] == "large"
    assert (row.reason, row.engine, row.sampling) == ("shadow", "large", 1.0)
    assert row.shadow is not None
    assert (row.shadow.engine, row.shadow.label, row.looks[0].label) == ("small", 0, 1)


async def test_where_nothing_is_to_be_watched_nobody_watches(tmp_path: Path) -> None:
    async with running(watched_settings(tmp_path, log=False), pair()) as gateway:
        await gateway.ask()

        assert gateway.services.witness is None
        assert gateway.logged() == []
