"""What the pages say of a cascade that is watched: decisions, tests of promises, alarms."""

import re
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from gateway.ledger.decisions import Alarm, Trial
from gateway.ledger.sqlite import SqliteStore
from policies.sequential import Evidence
from tests.gateway.conftest import Gateway, ledger_settings
from tests.gateway.dashboard.browsing import admin_key, local, log_in, send, text
from tests.gateway.watched import TEAM, URGENT, pair, running, watched_settings

ALARM = Alarm("disagreement", "small", "choice:2", "They disagree <b>often</b>.", 1.0e9)


async def newest(client: httpx.AsyncClient) -> httpx.Response:
    """The page of the newest decision."""
    listed = await client.get("/ui/decisions")
    number = re.search(r"/ui/decisions/(\d+)", listed.text)
    assert number is not None, listed.text
    return await client.get(f"/ui/decisions/{number[1]}")


async def test_a_decision_is_shown_question_by_question_without_its_texts(tmp_path: Path) -> None:
    settings = watched_settings(tmp_path, cascade={"floors": {"small": {"noul": 1.0}}})
    async with running(settings, pair(small=0, large=1)) as gateway:
        with local(gateway.client) as client:
            asked = await gateway.ask(team=TEAM, urgent=URGENT)
            await gateway.settled()
            page = await newest(client)

    said = text(page)
    assert page.status_code == 200
    assert asked["id"] in said
    assert "Choice of 2" in said
    assert "tier 1 small: confident" in said
    assert "large as a second opinion Probabilities by large" in said
    assert "option 1 0.000 option 2 1.000" in said
    assert "tier 2 large: low_confidence" in said
    for word in ("charged", "team", "Urgent", "billing"):
        assert word not in said


async def test_of_requests_with_one_id_each_has_a_page_with_its_own_questions(
    tmp_path: Path,
) -> None:
    async with running(watched_settings(tmp_path), pair()) as gateway:
        with local(gateway.client) as client:
            client.headers["x-request-id"] = "always-this"
            for questions in ({"urgent": URGENT}, {"team": TEAM, "urgent": URGENT}, {"team": TEAM}):
                await gateway.ask(**questions)
            await gateway.settled()
            listed = await client.get("/ui/decisions")
            paths = dict.fromkeys(re.findall(r"/ui/decisions/\d+", listed.text))
            pages = [await client.get(path) for path in reversed(paths)]

    assert [page.text.count('class="answer"') for page in pages] == [1, 2, 1]
    assert ["Choice of 2" in text(page) for page in pages] == [False, True, True]


async def test_a_request_to_one_engine_has_a_page_too(gateway: Gateway, tmp_path: Path) -> None:
    questions = {"urgent": URGENT}
    with gateway(ledger_settings(tmp_path)) as client, local(client):
        await client.post("/v1/systemone", json={"state": "s", "questions": questions})
        page = await newest(client)
        numbers = ("99", str(2**63), "x", "0", "-1", "9" * 5000, "١")
        missing = [await client.get(f"/ui/decisions/{number}") for number in numbers]

    assert "Question by question, only models with several engines" in text(page)
    assert [one.status_code for one in missing] == [404] * 7


async def test_who_is_not_an_admin_sees_no_decision_of_others(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    with gateway(settings) as client, local(client):
        await client.post("/v1/systemone", json={"state": "s", "questions": {"u": URGENT}})
        with closing(SqliteStore(settings.ledger.path)) as store:
            (one,) = store.recent(1)
            store.charge(one.charge._replace(key_id="config/other"), 0)
        own = await client.get("/ui/decisions/1")
        other = await client.get("/ui/decisions/2")

    assert (own.status_code, other.status_code) == (200, 404)


async def test_alarms_and_tests_stand_under_the_promises_until_somebody_has_seen_to_them(
    tmp_path: Path,
) -> None:
    settings = watched_settings(tmp_path)
    key = admin_key(settings)
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.raise_alarm(ALARM)
        store.keep_trial(Trial("small", "choice:2", "d", 0.0, Evidence(0.1, 40, 9)))
    async with running(settings, pair()) as gateway:
        client, services = gateway.client, gateway.services
        await log_in(client, key)
        page = await client.get("/ui")
        demoted = services.plans["cascade"].tiers[0].demoted
        cleared = await send(client, "/ui/alarms/1/clear", "/ui")
        again = await send(client, "/ui/alarms/1/clear", "/ui")
        after = await client.get("/ui")

    said = text(page)
    assert "With exceptions" in said
    assert "Broken promise alarm 1 They disagree <b>often</b>." in said
    assert "<b>often" not in page.text
    assert "Not kept since an alarm: choice:2" in said
    assert "small choice:2 ≤ 10 % 9 of 40" in said
    assert demoted == {"choice:2"}
    assert (cleared.status_code, again.status_code) == (303, 404)
    assert "alarm 1" not in text(after)
    assert services.plans["cascade"].tiers[0].demoted == frozenset()


@pytest.mark.parametrize(
    "path", [f"/ui/alarms/{number}/clear" for number in (1, 2**63, "9" * 5000)]
)
async def test_without_a_login_no_alarm_is_cleared(
    gateway: Gateway, tmp_path: Path, path: str
) -> None:
    settings = ledger_settings(tmp_path)
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.raise_alarm(ALARM)
    with gateway(settings) as client, local(client):
        page = await client.get("/ui")
        response = await send(client, path, "/ui/playground")
    with closing(SqliteStore(settings.ledger.path)) as store:
        holding = store.alarms()

    assert "They disagree" in text(page)
    assert response.status_code == 403
    assert len(holding) == 1
