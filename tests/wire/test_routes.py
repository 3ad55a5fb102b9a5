"""Keys, routes, models and the request id (W09-W11, W29, W32)."""

import re

import httpx
import pytest
from typesafe_sdk import (
    TypeSafeAuthenticationError,
    TypeSafeBadRequestError,
    TypeSafeClient,
)

from .asks import MIXED, STATE, ask, raw
from .conftest import sdk_client
from .serving import KEY, Address
from .sockets import exchange, posted
from .wellformed import decision, refusal

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 403),
        ("Bearer ", 403),
        ("Bearer", 403),
        ("Basic dXNlcjpwYXNz", 403),
        (KEY, 403),
        ("Bearer wrong", 401),
        (f"Bearer {KEY}x", 401),
        (f"Bearer {KEY[:-1]}", 401),
        (f"Bearer {KEY} {KEY}", 401),
        (f"Bearer {KEY}", 200),
        (f"bearer   {KEY}", 200),
    ],
)
def test_w09_no_key_is_403_and_a_wrong_one_401(
    locked: Address, authorization: str | None, status: int
) -> None:
    headers = [] if authorization is None else [f"Authorization: {authorization}"]

    asked = exchange(locked, posted(raw(), *headers))
    listed = exchange(locked, posted(b"", *headers, path="/v1/models", method="GET"))

    assert (asked.status, listed.status) == (status, status)
    if status != 200:
        for reply in (asked, listed):
            assert refusal(reply.body)["detail"]["error_type"] == "authentication_error"
            assert KEY.encode() not in reply.body


def test_w09_a_key_is_wanted_before_the_body_is_looked_at(locked: Address) -> None:
    reply = exchange(locked, posted(b"{not json", "Content-Encoding: snappy"))

    assert reply.status == 403


def test_w09_the_sdk_raises_its_own_error_for_a_wrong_key(locked: Address) -> None:
    with (
        sdk_client(locked, key="wrong") as client,
        pytest.raises(TypeSafeAuthenticationError) as caught,
    ):
        client.system_one(state=STATE, questions=MIXED)

    assert caught.value.status == 401


@pytest.mark.parametrize("authorization", ["Bearer x", "Bearer ", "Basic abc", "\xff", ""])
def test_w09_without_keys_any_authorization_will_do(server: Address, authorization: str) -> None:
    reply = exchange(server, posted(raw(), f"Authorization: {authorization}"))

    assert reply.status == 200


def test_w10_the_sdk_lists_models(sdk: TypeSafeClient) -> None:
    listed = sdk.models.list().models

    assert "jev-latest" in {model.name for model in listed}
    for model in listed:
        assert model.description
        assert _DATE.fullmatch(model.release_date)


def test_w10_openai_clients_find_the_same_names_at_the_same_path(http: httpx.Client) -> None:
    listed = http.get("/v1/models").json()

    assert [one["id"] for one in listed["data"]] == [one["name"] for one in listed["models"]]


def test_w10_every_listed_model_answers(http: httpx.Client) -> None:
    names = [model["name"] for model in http.get("/v1/models").json()["models"]]

    statuses = {
        name: http.post("/v1/systemone", json=ask(model=name)).status_code for name in names
    }

    assert set(statuses.values()) == {200}, statuses


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", "/v1/systemone", raw()),
        ("POST", "/v1/systemone", b"{}"),
        ("POST", "/v1/systemone", b"{"),
        ("GET", "/v1/systemone", b""),
        ("GET", "/v1/models", b""),
        ("GET", "/health", b""),
        ("GET", "/nowhere", b""),
    ],
)
def test_w11_every_answer_carries_a_request_id(
    http: httpx.Client, method: str, path: str, content: bytes
) -> None:
    first = http.request(method, path, content=content)
    second = http.request(method, path, content=content)

    assert first.headers["x-typesafe-request-id"]
    assert first.headers["x-typesafe-request-id"] != second.headers["x-typesafe-request-id"]
    assert first.headers["content-type"] == "application/json"


def test_w11_the_sdk_finds_the_request_id_of_a_success_and_of_an_error(
    sdk: TypeSafeClient,
) -> None:
    answered = sdk.system_one(state=STATE, questions=MIXED)

    with pytest.raises(TypeSafeBadRequestError) as caught:
        sdk.system_one(state=STATE, questions=MIXED, model="no-such-model")

    assert answered.request_id
    assert "request_id=" in str(caught.value)


def test_w11_a_callers_own_id_comes_back_without_what_could_split_a_log(
    http: httpx.Client,
) -> None:
    response = http.get("/health", headers={"x-request-id": "abc-1.2:3 <script>\t" + "y" * 500})

    assert response.headers["x-typesafe-request-id"].startswith("abc-1.2:3script")
    assert len(response.headers["x-typesafe-request-id"]) <= 128


@pytest.mark.parametrize("model", ["no-such-model", "", "JEV-LATEST", "../jev-latest"])
def test_w29_an_unknown_model_is_a_usage_error(http: httpx.Client, model: str) -> None:
    response = http.post("/v1/systemone", json=ask(model=model))

    assert response.status_code == 400
    assert refusal(response.content)["detail"]["error_type"] == "api_usage_error"


@pytest.mark.parametrize("fields", [{}, {"model": None}], ids=["absent", "null"])
def test_w29_without_a_model_the_default_answers(
    http: httpx.Client, fields: dict[str, None]
) -> None:
    body = {"state": STATE, "questions": MIXED, **fields}

    response = http.post("/v1/systemone", json=body)

    assert response.status_code == 200
    decision(body, response.content)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/systemone", 405),
        ("PUT", "/v1/systemone", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/nowhere", 404),
        ("POST", "/", 404),
        ("POST", "/v1/systemone/", 404),
        ("GET", "/v1/models/", 404),
        ("POST", "/v1//systemone", 404),
    ],
)
def test_w32_what_is_not_there_is_json_and_never_a_redirect(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    response = http.request(method, path, content=raw() if method == "POST" else None)

    assert response.status_code == status
    refusal(response.content)
    if status == 405:
        assert response.headers["allow"]


def test_w32_a_base_url_that_ends_in_v1_works_too(server: Address) -> None:
    with sdk_client(server, prefix="/v1/") as client:
        answered = client.system_one(state=STATE, questions=MIXED)
        listed = client.models.list()

    assert list(answered.answers) == list(MIXED)
    assert listed.models
