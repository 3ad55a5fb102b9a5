"""`POST /v1/outcomes`: truths find their decisions, and only their owner's."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.contract import Choice, Noul, Question, Score, kind_of, label_count
from gateway.config import Settings
from gateway.ledger.decisions import Asked, Logged, Period, label_digests, question_digest
from gateway.ledger.sqlite import SqliteStore
from policies.cells import fingerprint
from tests.gateway.conftest import Gateway, bearer, ledger_settings
from tests.gateway.ledger.decided import NOON_S, decided

QUESTIONS: dict[str, Question] = {
    "team": Choice({"billing": "Payments", "tech": None}, "Which team?"),
    "urgent": Noul("Is it urgent?"),
    "mood": Score(["calm", "upset", "angry"]),
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return ledger_settings(tmp_path)


@contextmanager
def opened(settings: Settings) -> Iterator[SqliteStore]:
    with closing(SqliteStore(settings.ledger.path)) as store:
        yield store


def decide(settings: Settings, name: str, request_id: str = "req_1") -> None:
    """Log what a cascade decided for the key of this name."""
    with opened(settings) as store:
        key_id = next(key.key_id for key in store.every_key() if key.name == name)
        rows, asked = [], []
        for number, (id_, question) in enumerate(
            QUESTIONS.items(), len(list(store.decisions(Period())))
        ):
            mark = fingerprint(question)
            rows.append(
                decided(
                    decision_id=number,
                    key_id=key_id,
                    request_id=request_id,
                    question=question_digest(request_id, id_),
                    fingerprint=mark,
                    kind=kind_of(question),
                    labels=label_count(question),
                )
            )
            asked.append(Asked(mark, label_digests(mark, question), NOON_S))
        store.log_decisions(rows, asked)


def truths(settings: Settings) -> list[int | None]:
    with opened(settings) as store:
        return [one.truth for one in sorted(store.decisions(Period()), key=number_of)]


def number_of(one: Logged) -> int:
    return one.decision_id


def outcome(question: str, truth: Any, request_id: str = "req_1") -> dict[str, Any]:
    return {"request_id": request_id, "question": question, "truth": truth}


def by_fingerprint(mark: str) -> dict[str, Any]:
    return {"request_id": "req_1", "fingerprint": mark, "truth": 1}


async def posted(
    client: httpx.AsyncClient, headers: dict[str, str], *outcomes: Any
) -> httpx.Response:
    return await client.post("/v1/outcomes", json={"outcomes": list(outcomes)}, headers=headers)


async def test_a_truth_of_each_kind_is_kept(gateway: Gateway, settings: Settings) -> None:
    headers = bearer(settings)
    decide(settings, "team")

    with gateway(settings) as client:
        answer = await posted(
            client, headers, outcome("team", "tech"), outcome("urgent", True), outcome("mood", 2)
        )

    assert (answer.status_code, answer.json()) == (200, {"accepted": 3})
    assert answer.headers["x-typesafe-request-id"]
    assert truths(settings) == [1, 0, 2]


async def test_a_question_may_be_named_by_its_fingerprint(
    gateway: Gateway, settings: Settings
) -> None:
    headers = bearer(settings)
    decide(settings, "team")
    named = {"request_id": "req_1", "fingerprint": fingerprint(QUESTIONS["urgent"]), "truth": False}

    with gateway(settings) as client:
        answer = await posted(client, headers, named)

    assert answer.status_code == 200
    assert truths(settings) == [None, 1, None]


async def test_the_latest_of_several_requests_with_one_id_is_meant(
    gateway: Gateway, settings: Settings
) -> None:
    headers = bearer(settings)
    decide(settings, "team")
    decide(settings, "team")

    with gateway(settings) as client:
        await posted(client, headers, outcome("team", "tech"))

    assert truths(settings) == [None, None, None, 1, None, None]


async def test_a_key_tells_about_its_own_requests_only(
    gateway: Gateway, settings: Settings
) -> None:
    bearer(settings, "owner")
    stranger = bearer(settings, "stranger")
    admin = bearer(settings, "ops", scopes=["admin"])
    decide(settings, "owner")

    with gateway(settings) as client:
        refused = [await posted(client, who, outcome("team", "tech")) for who in (stranger, admin)]

    assert [answer.status_code for answer in refused] == [422, 422]
    assert refused[0].json()["detail"][0]["type"] == "unknown_request"
    assert truths(settings) == [None, None, None]


@pytest.mark.parametrize(
    ("wrong", "loc", "type_"),
    [
        (outcome("team", "sales"), ["truth"], "unknown_label"),
        (outcome("team", 1), ["truth"], "unknown_label"),
        (outcome("urgent", "yes"), ["truth"], "unknown_label"),
        (outcome("urgent", 1), ["truth"], "unknown_label"),
        (outcome("mood", 3), ["truth"], "unknown_label"),
        (outcome("mood", -1), ["truth"], "unknown_label"),
        (outcome("mood", True), ["truth"], "unknown_label"),
        (outcome("mood", 10**30), ["truth"], "unknown_label"),
        (outcome("other", True), ["question"], "unknown_question"),
        (outcome("team", "tech", "req_2"), ["request_id"], "unknown_request"),
        ({"request_id": "req_1", "truth": True}, ["question"], "missing"),
        (
            {"request_id": "req_1", "fingerprint": "0" * 16, "truth": 1},
            ["fingerprint"],
            "unknown_question",
        ),
        (
            {"request_id": "req_1", "fingerprint": "x", "truth": 1},
            ["fingerprint"],
            "string_pattern_mismatch",
        ),
        ({"question": "team", "truth": True}, ["request_id"], "missing"),
        ({"request_id": "", "question": "team", "truth": 1}, ["request_id"], "string_too_short"),
    ],
)
async def test_what_is_wrong_is_422_with_its_place_and_nothing_is_kept(
    *, gateway: Gateway, settings: Settings, wrong: Any, loc: list[str], type_: str
) -> None:
    headers = bearer(settings)
    decide(settings, "team")

    with gateway(settings) as client:
        answer = await posted(client, headers, outcome("urgent", True), wrong)

    assert answer.status_code == 422
    (fault,) = answer.json()["detail"]
    assert fault["loc"] == ["body", "outcomes", 1, *loc]
    assert fault["type"] == type_
    assert truths(settings) == [None, None, None]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"outcomes": []}', b'{"outcomes": [5]}', b"\xff"]
)
async def test_a_body_that_says_nothing_is_422(
    gateway: Gateway, settings: Settings, body: bytes
) -> None:
    headers = bearer(settings)

    with gateway(settings) as client:
        answer = await client.post("/v1/outcomes", content=body, headers=headers)

    assert answer.status_code == 422
    assert all(fault["loc"][0] == "body" for fault in answer.json()["detail"])


async def test_faults_are_told_up_to_a_hundred(gateway: Gateway, settings: Settings) -> None:
    headers = bearer(settings)

    with gateway(settings) as client:
        many = await posted(client, headers, *[outcome("team", "x")] * 1000)
        too_many = await posted(client, headers, *[outcome("team", "x")] * 1001)

    assert len(many.json()["detail"]) == 100
    assert too_many.json()["detail"][0]["type"] == "too_long"


async def test_without_the_scope_or_a_ledger_nothing_is_told(
    gateway: Gateway, settings: Settings, client: httpx.AsyncClient
) -> None:
    silent = bearer(settings, scopes=["usage"])

    with gateway(settings) as keyed:
        forbidden = await posted(keyed, silent, outcome("team", "tech"))
    nowhere = await posted(client, {}, outcome("team", "tech"))

    assert (forbidden.status_code, nowhere.status_code) == (403, 404)


async def test_outcomes_count_against_the_rate_of_requests(
    gateway: Gateway, settings: Settings
) -> None:
    headers = bearer(settings, rpm=1)
    decide(settings, "team")

    with gateway(settings) as client:
        answers = [await posted(client, headers, outcome("urgent", True)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 429]


async def test_a_compressed_body_is_understood(gateway: Gateway, settings: Settings) -> None:
    import gzip

    headers = bearer(settings)
    decide(settings, "team")
    body = gzip.compress(json.dumps({"outcomes": [outcome("urgent", False)]}).encode())

    with gateway(settings) as client:
        answer = await client.post(
            "/v1/outcomes", content=body, headers={**headers, "content-encoding": "gzip"}
        )

    assert answer.status_code == 200
    assert truths(settings) == [None, 1, None]
