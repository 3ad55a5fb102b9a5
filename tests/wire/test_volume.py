"""Long states, many questions, many callers (W34-W36)."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from typesafe_sdk import TypeSafeClient

from .asks import CHOICE, MIXED, NOUL, SCORE, STATE, answered, ask
from .conftest import sdk_client
from .serving import Address
from .wellformed import refusal


def test_w34_a_state_of_400_000_tokens_is_refused_and_never_cut(http: httpx.Client) -> None:
    response = http.post("/v1/systemone", json=ask(state="refund please " * 200_000))

    assert response.status_code == 400
    detail = refusal(response.content)["detail"]
    assert detail["error_type"] == "max_tokens_exceeded"
    assert detail["x_tokens"] > detail["x_max_tokens"]


def test_w35_64_mixed_questions_are_answered(http: httpx.Client) -> None:
    kinds = (NOUL, CHOICE, SCORE)

    found = answered(http, ask({f"q{i}": kinds[i % 3] for i in range(64)}))

    for i in range(3, 64):
        assert found[f"q{i}"] == found[f"q{i % 3}"]


@pytest.mark.parametrize("count", [200, 255])
def test_w35_more_questions_than_others_allow_are_answered(http: httpx.Client, count: int) -> None:
    questions = {
        f"q{i}": {**NOUL, "instructions": f"Is this about order {i}?"} for i in range(count)
    }

    answered(http, ask(questions))


def test_w35_more_questions_than_the_limit_are_refused(http: httpx.Client) -> None:
    response = http.post("/v1/systemone", json=ask({f"q{i}": NOUL for i in range(256)}))

    assert response.status_code == 422
    assert refusal(response.content)["detail"][0]["loc"] == ["body", "questions"]


@pytest.mark.slow
def test_w36_100_parallel_calls_of_the_sdk_all_end_well(server: Address) -> None:
    with sdk_client(server, retries=2) as client, ThreadPoolExecutor(100) as callers:
        answers = list(callers.map(lambda number: _asked(client, number), range(100)))

    assert [sorted(one) for one in answers] == [sorted(MIXED)] * 100


def test_w36_callers_in_parallel_get_their_own_answers(server: Address) -> None:
    states = [f"{STATE} Order {number}." for number in range(24)]
    with httpx.Client(base_url=server.url, timeout=90, trust_env=False) as client:
        alone = [client.post("/v1/systemone", json=ask(state=one)).json() for one in states]
        with ThreadPoolExecutor(24) as callers:
            together = list(
                callers.map(
                    lambda one: client.post("/v1/systemone", json=ask(state=one)).json(), states
                )
            )

    assert [one["answers"] for one in together] == [one["answers"] for one in alone]
    assert len({one["answers"]["refund"]["noul"] for one in alone}) > 1


def _asked(client: TypeSafeClient, number: int) -> list[str]:
    return list(client.system_one(state=f"{STATE} Order {number}.", questions=MIXED).answers)
