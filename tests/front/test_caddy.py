"""The Caddyfile in front of a live gateway: what gets through, what not, and in which words."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from typesafe_sdk import (
    Image,
    Noul,
    TypeSafeAPIError,
    TypeSafeError,
    TypeSafeUnprocessableEntityError,
)

from gateway.config import Settings
from gateway.config_file import load
from gateway.config_server import ServerSection
from gateway.routes import build_app
from gateway.wiring import new_services
from tests.front.caddy import CADDYFILE, Front
from tests.front.conftest import Behind
from tests.wire.asks import MIXED, NOUL, STATE, ask, raw
from tests.wire.serving import KEY
from tests.wire.test_bodies import png
from tests.wire.wellformed import decision, refusal

BEARER = {"authorization": f"Bearer {KEY}"}
SDK_TIMEOUT_S, SDK_KEEP_ALIVE_S = 10, 30
CAP = Settings().limits.max_body_bytes
LONG = "word " * (33 * 2**20 // 5)
ONE = {"q": Noul(instructions="Is this long?")}
JSON = {**BEARER, "content-type": "application/json"}


def test_the_sdk_is_answered_through_tls_with_a_zstd_body(behind: Behind) -> None:
    state = f"{STATE} {'and so on ' * 300}"
    sent: list[httpx2.Request] = []
    with behind.front.sdk(sent=sent) as client:
        answered = client.system_one(state=state, questions=MIXED)
        listed = client.models.list()

    assert list(answered.answers) == list(MIXED)
    assert answered.request_id
    assert sent[0].headers["content-encoding"] == "zstd"
    assert "jev-latest" in {model.name for model in listed.models}


def test_an_image_gets_through_and_is_refused_by_the_gateway(front: Front) -> None:
    with front.sdk() as client, pytest.raises(TypeSafeUnprocessableEntityError) as caught:
        client.system_one(
            state=["What is this?", Image(png())],
            questions=ONE,
        )

    assert "image" in str(caught.value).lower()


@pytest.mark.parametrize("compression", ["zstd", False])
def test_the_sdk_is_told_413_of_33_mib_whether_or_not_it_compresses(
    front: Front, compression: Any
) -> None:
    with front.sdk(compression=compression) as client, pytest.raises(TypeSafeAPIError) as caught:
        client.system_one(state=LONG, questions=ONE)

    assert caught.value.status == 413
    assert f"{CAP} bytes" in str(caught.value)


def test_one_byte_over_the_cap_is_413_in_json_with_and_without_a_length(
    client: httpx2.Client,
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"[" * (CAP - 5)
        yield b"[" * 6

    told = client.post("/v1/systemone", content=b"[" * (CAP + 1), headers=JSON)
    untold = client.post("/v1/systemone", content=pieces(), headers=JSON)

    for answer in (told, untold):
        assert answer.status_code == 413
        detail = refusal(answer.content)["detail"]
        assert detail["error_type"] == "api_usage_error"
        assert detail["message"] == f"The request body is longer than {CAP} bytes."
        assert answer.headers["x-typesafe-request-id"]


def test_a_body_that_is_cut_off_is_not_sent_to_the_gateway_again(
    behind: Behind, client: httpx2.Client
) -> None:
    def pieces() -> Iterator[bytes]:
        yield from [b"[" * (CAP // 4)] * 5

    answer = client.post("/v1/systemone", content=pieces(), headers=JSON)

    request_id = answer.headers["x-typesafe-request-id"]
    assert logged(behind, request_id)["status"] == 499
    assert behind.gateway.log.read_text(encoding="utf-8").count(request_id) == 1


def test_a_body_of_the_cap_itself_gets_through(client: httpx2.Client) -> None:
    answer = client.post("/v1/systemone", content=b"[" * CAP, headers=JSON)

    assert answer.status_code == 422


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n", b"5\r\nlonger than that", b"0\r\nno colon\r\n\r\n", b"1;" + b"x" * 20_000]
)
def test_chunks_that_are_none_are_the_callers_fault(front: Front, chunks: bytes) -> None:
    head = (
        f"POST /v1/systemone HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
        "transfer-encoding: chunked\r\n\r\n"
    )
    with (
        socket.create_connection(("localhost", front.port), timeout=60) as plain,
        front.trust.wrap_socket(plain, server_hostname="localhost") as garbled,
    ):
        garbled.sendall(head.encode() + chunks)
        answer = garbled.recv(65_536).decode()

    assert answer.startswith("HTTP/1.1 400")
    assert "retry-after" not in answer.lower()
    assert "api_usage_error" in answer


def test_a_slow_upload_is_408_by_the_gateway_and_others_are_answered_meanwhile(
    front: Front, client: httpx2.Client
) -> None:
    head = (
        f"POST /v1/systemone HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
        "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"
    )
    with (
        socket.create_connection(("localhost", front.port), timeout=60) as plain,
        front.trust.wrap_socket(plain, server_hostname="localhost") as slow,
    ):
        slow.sendall(head.encode())
        assert client.get("/health").status_code == 200
        answer = slow.recv(65_536).decode()

    assert answer.startswith("HTTP/1.1 408")
    assert "timeout_error" in answer


@pytest.mark.parametrize(
    "path",
    [
        *("/metrics", "/ready", "/v1/admin/keys", "/v1/admin/keys/x/revoke", "/ui", "/ui/login"),
        *("//metrics", "/%6Detrics", "/METRICS", "/v1/../metrics", "/v1/systemone/../../metrics"),
        *("/metrics/", "/metrics?x=1", "/v1/systemone%2F..%2F..%2Fmetrics", "/", "/v1/systemone/"),
    ],
)
def test_what_is_not_for_the_public_is_not_there(front: Front, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
    with (
        socket.create_connection(("localhost", front.port), timeout=60) as plain,
        front.trust.wrap_socket(plain, server_hostname="localhost") as line,
    ):
        line.sendall(f"{request}connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65_536), b"")).decode()

    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 404")
    assert json.loads(body)["detail"]["error_type"] == "api_usage_error"
    assert "server:" not in head.lower()


def test_every_route_is_either_public_in_the_caddyfile_or_known_to_be_private() -> None:
    private = ("/metrics", "/ready", "/v1/admin/", "/ui")
    public = CADDYFILE.read_text(encoding="utf-8").partition("@public path ")[2].split("\n")[0]
    app = build_app(new_services(Settings()), access_log=False)

    paths = {route.path for route in app.routes if hasattr(route, "path")}

    assert set(public.split()) == {path for path in paths if not path.startswith(private)}


def test_the_caps_of_caddy_and_gateway_are_the_same() -> None:
    text = CADDYFILE.read_text(encoding="utf-8")

    assert f"max_size {CAP // 2**20}MiB" in text
    assert f"> {CAP}\n" in text
    assert f"longer than {CAP} bytes." in text


def test_the_times_of_caddy_fit_those_of_gateway_and_sdk() -> None:
    text = CADDYFILE.read_text(encoding="utf-8")
    server, leaving = ServerSection(), load(CADDYFILE.parent / "deploy/config.toml").settings.server

    def seconds(name: str) -> float:
        (found,) = re.findall(rf"^\s*{name} (?:{{\$\w+:)?(\d+)(s|m)}}?$", text, re.MULTILINE)
        return int(found[0]) * {"s": 1, "m": 60}[found[1]]

    assert server.deadline_s < seconds("response_header_timeout") < SDK_TIMEOUT_S
    assert server.body_deadline_s < seconds("read_body")
    assert seconds("keepalive") < server.keep_alive_s
    assert seconds("idle") > SDK_KEEP_ALIVE_S
    assert seconds("health_interval") + seconds("health_timeout") < leaving.leave_s
    assert seconds("lb_try_duration") < SDK_TIMEOUT_S


def logged(behind: Behind, request_id: str) -> dict[str, Any]:
    """The line of the gateway's log about this request."""
    while True:
        lines = behind.gateway.log.read_text(encoding="utf-8").splitlines()
        for line in lines:
            found: dict[str, Any] = json.loads(line) if line.endswith("}") else {}
            if found.get("request_id") == request_id and found.get("message") == "request":
                return found


def test_the_clients_address_is_right_and_cannot_be_forged(behind: Behind) -> None:
    from_elsewhere = httpx2.HTTPTransport(verify=behind.front.trust, local_address="127.0.0.2")
    forged = {
        "x-forwarded-for": "203.0.113.9",
        "forwarded": "for=203.0.113.9",
        "x-real-ip": "203.0.113.9",
        **BEARER,
    }
    with httpx2.Client(
        base_url=f"https://localhost:{behind.front.port}", transport=from_elsewhere
    ) as client:
        answer = client.post("/v1/systemone", json=ask(), headers=forged)

    assert answer.status_code == 200
    assert logged(behind, answer.headers["x-typesafe-request-id"])["client"] == "127.0.0.2"


def test_a_request_has_one_id_from_caddy_to_the_log(behind: Behind, client: httpx2.Client) -> None:
    made = client.post("/v1/systemone", json=ask(), headers=BEARER)
    own = client.post("/v1/systemone", json=ask(), headers={**BEARER, "x-request-id": "mine-3"})

    assert len(made.headers["x-typesafe-request-id"]) == 36
    assert logged(behind, made.headers["x-typesafe-request-id"])["status"] == 200
    assert own.headers["x-typesafe-request-id"] == "mine-3"


@pytest.mark.parametrize("coding", ["gzip", "zstd", None])
def test_answers_are_compressed_only_for_who_asks(front: Front, coding: str | None) -> None:
    body = ask({f"question {number}": NOUL for number in range(50)})
    with front.client(headers={"accept-encoding": coding or "identity"}) as client:
        answer = client.post("/v1/systemone", json=body, headers=BEARER)

    assert answer.headers.get("content-encoding") == coding
    decision(body, answer.content)


def test_faults_of_the_gateway_keep_their_words(client: httpx2.Client) -> None:
    no_key = client.post("/v1/systemone", content=raw())
    invalid = client.post("/v1/systemone", json=ask(state=5), headers=BEARER)

    assert (no_key.status_code, invalid.status_code) == (403, 422)
    assert refusal(invalid.content)["detail"][0]["loc"] == ["body", "state"]


def test_the_sdk_loses_nothing_while_caddy_reloads(front: Front) -> None:
    """A connection that is being made when Caddy changes listeners may be reset; it is repeated."""
    failures: list[str] = []
    answers: list[str] = []
    stop = threading.Event()

    def keep_asking() -> None:
        with front.sdk(retries=2) as client:
            while not stop.is_set():
                try:
                    answers.append(client.system_one(state=STATE, questions=MIXED).model)
                except TypeSafeError as error:
                    failures.append(repr(error))

    callers = [threading.Thread(target=keep_asking) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        for _ in range(3):
            front.reload()
    finally:
        stop.set()
        for caller in callers:
            caller.join()

    assert failures == []
    assert len(answers) > 3
