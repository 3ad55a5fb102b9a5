"""The HTTP surface without sockets: routes, refusals, headers."""

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from engines.scripted import ScriptedEngine
from gateway.config import AuthSection
from gateway.config_limits import LimitsSection
from gateway.config_server import ServerSection
from tests.gateway.conftest import ASK, Gateway, body_of, settings_of

JSON = {"content-type": "application/json"}
KEY = "tg_0123456789abcdefghij"


async def test_answers_have_the_askers_ids_and_the_concrete_model(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post("/v1/systemone", json=ASK)

    assert response.status_code == 200
    body = response.json()
    assert body["model"] == "scripted-1"
    assert list(body["answers"]) == ["team", "urgent", "mood"]
    assert list(body["answers"]["team"]["probabilities"]) == ["billing", "tech"]
    assert body["answers"]["mood"]["legend"] == {"0": "calm", "1": "upset", "2": "angry"}
    assert set(body["answers"]["urgent"]) == {"type", "noul"}
    assert body["usage"] == {"input_tokens": 3 * 4, "output_tokens": 0}
    assert response.headers["x-tiergate-engine"] == "scripted"


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/v1/systemone"])
async def test_a_base_url_with_v1_works_too(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.post(path, json=ASK)).status_code == 200


async def test_the_model_list_suits_system_one_and_openai_clients(
    client: httpx.AsyncClient,
) -> None:
    body = (await client.get("/v1/models")).json()

    assert [model["name"] for model in body["models"]] == ["scripted-1", "jev-latest"]
    assert all(isinstance(value, str) for model in body["models"] for value in model.values())
    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["scripted-1", "jev-latest"]
    assert (await client.get("/v1/v1/models")).json() == body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/systemone", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/systemone/", 404),
        ("GET", "/", 404),
        ("GET", "/v2/anything", 404),
    ],
)
async def test_paths_and_methods_that_are_not_there_are_told_in_json(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path)

    assert response.status_code == status
    assert response.json()["detail"]["error_type"] == "api_usage_error"
    assert response.json()["detail"]["message"]
    assert response.headers["x-typesafe-request-id"]
    assert ("allow" in response.headers) == (status == 405)


async def test_an_unknown_model_is_400_and_names_what_exists(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/systemone", json=ASK | {"model": "gpt-9"})

    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "api_usage_error"
    assert "jev-latest" in response.json()["detail"]["message"]


@pytest.mark.parametrize("model", [{}, {"model": None}])
async def test_without_a_model_the_default_answers(
    client: httpx.AsyncClient, model: dict[str, Any]
) -> None:
    ask = {name: value for name, value in ASK.items() if name != "model"} | model

    assert (await client.post("/v1/systemone", json=ask)).json()["model"] == "scripted-1"


async def test_request_ids_are_made_or_taken_over_without_what_is_unsafe(
    client: httpx.AsyncClient,
) -> None:
    made = await client.get("/health")
    taken = await client.get("/health", headers={"x-typesafe-request-id": "my-id.7"})
    cleaned = await client.get(
        "/health", headers={b"x-request-id": b"a b<script>\xe9" + b"c" * 500}
    )

    assert made.headers["x-typesafe-request-id"].startswith("req_")
    assert taken.headers["x-typesafe-request-id"] == "my-id.7"
    assert cleaned.headers["x-typesafe-request-id"] == ("abscript" + "c" * 500)[:128]


async def test_while_engines_load_asking_is_503_with_a_hint_and_health_is_fine(
    gateway: Gateway,
) -> None:
    with gateway(loaded=False) as client:
        asked = await client.post("/v1/systemone", json=ASK)
        listed = await client.get("/v1/models")
        ready = await client.get("/ready")
        health = await client.get("/health")

    assert asked.status_code == listed.status_code == ready.status_code == 503
    assert asked.headers["retry-after-ms"] == "5000"
    assert asked.headers["retry-after"] == "5"
    assert health.json() == {"status": "ok"}


async def test_ready_names_the_engines(client: httpx.AsyncClient) -> None:
    body = (await client.get("/ready")).json()

    assert body["status"] == "ready"
    assert body["engines"]["scripted"]["max_tokens"] == 65_536


async def test_a_full_lane_is_529_with_hints_the_sdk_will_follow(gateway: Gateway) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    with gateway(engine=engine, max_waiting=1) as client:
        first = asyncio.create_task(client.post("/v1/systemone", json=ASK))
        while engine.entered < 1:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(client.post("/v1/systemone", json=ASK)) for _ in range(2)]

        done, waiting = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        hold.set()
        answered = await asyncio.gather(first, *waiting)

    refused = done.pop().result()
    assert [response.status_code for response in answered] == [200, 200]
    assert refused.status_code == 529
    assert 0 < int(refused.headers["retry-after-ms"]) <= 10_000
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert refused.json()["detail"]["error_type"] == "overloaded_error"


async def test_an_answer_that_takes_too_long_is_504_and_its_work_is_dropped(
    gateway: Gateway,
) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    with gateway(settings_of(server=ServerSection(deadline_s=0.1)), engine) as client:
        late = await client.post("/v1/systemone", json=ASK)
        hold.set()

    assert late.status_code == 504
    assert late.json()["detail"]["error_type"] == "timeout_error"


async def test_weights_that_are_not_finite_are_500_with_fixed_words(gateway: Gateway) -> None:
    engine = ScriptedEngine(script=lambda *_: [float("nan")] * 2)
    ask = {"state": "s", "questions": {"q": {"type": "noul", "instructions": "i"}}}
    with gateway(engine=engine) as client:
        response = await client.post("/v1/systemone", json=ask)

    assert response.status_code == 500
    assert response.json()["detail"]["error_type"] == "server_error"
    assert "nan" not in response.text.lower()


async def test_a_bug_is_500_in_json_and_says_nothing_of_itself(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr("gateway.app.systemone.encode", explode)
    with gateway() as client:
        response = await client.post("/v1/systemone", json=ASK)

    assert response.status_code == 500
    assert response.json()["detail"]["error_type"] == "server_error"
    assert "secret" not in response.text
    assert response.headers["x-typesafe-request-id"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 403),
        ("", 403),
        ("Bearer", 403),
        ("Bearer  ", 403),
        ("Basic abc", 403),
        ("Bearer wrong", 401),
        (f"Bearer {KEY}", 200),
        (f"bearer   {KEY} ", 200),
    ],
)
async def test_keys(gateway: Gateway, header: str | None, status: int) -> None:
    keyed = settings_of(auth=AuthSection(keys={"team": SecretStr(KEY)}))
    headers = {} if header is None else {"authorization": header}
    with gateway(keyed) as client:
        asked = await client.post("/v1/systemone", json=ASK, headers=headers)
        listed = await client.get("/v1/models", headers=headers)

    assert asked.status_code == listed.status_code == status
    if status != 200:
        assert asked.json()["detail"]["error_type"] == "authentication_error"


async def test_without_keys_any_authorization_header_is_fine(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/systemone", json=ASK, headers={"authorization": "Bearer x"})

    assert response.status_code == 200


async def test_a_caller_is_authenticated_before_the_body_is_read(gateway: Gateway) -> None:
    keyed = settings_of(auth=AuthSection(keys={"team": SecretStr(KEY)}))
    with gateway(keyed) as client:
        response = await client.post("/v1/systemone", content=b"not json", headers=JSON)

    assert response.status_code == 403


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/vnd.api+json", 200),
        ("application/json; charset=utf-16", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 400),
    ],
)
async def test_media_types(client: httpx.AsyncClient, media_type: str, status: int) -> None:
    headers = {"content-type": media_type}
    response = await client.post("/v1/systemone", content=body_of(), headers=headers)

    assert response.status_code == status


async def test_a_body_without_a_media_type_is_read_as_json(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/systemone", content=body_of())).status_code == 200


async def test_a_body_over_the_cap_is_413(gateway: Gateway) -> None:
    with gateway(settings_of(limits=LimitsSection(max_body_bytes=1024))) as client:
        response = await client.post("/v1/systemone", content=body_of(state="x" * 1024))

    assert response.status_code == 413
    assert "1024 bytes" in response.json()["detail"]["message"]


async def test_a_state_that_is_too_long_is_400_with_both_counts(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/systemone", content=body_of(state="a " * 70_000))

    assert response.status_code == 400
    detail = response.json()["detail"]
    assert detail["error_type"] == "max_tokens_exceeded"
    assert detail["x_tokens"] == 70_001
    assert detail["x_max_tokens"] == 65_536
    assert "70001" in detail["message"]


async def test_a_large_body_is_read_off_the_event_loop_and_answered(gateway: Gateway) -> None:
    with gateway(engine=ScriptedEngine(max_tokens=None)) as client:
        response = await client.post("/v1/systemone", content=body_of(state="word " * 200_000))

    assert response.status_code == 200
    assert json.loads(response.text)["usage"]["input_tokens"] == 3 * 200_001
