"""A gateway whose engine is held: overload, deadlines, callers who leave, failures (T37-T42)."""

import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import httpx
import httpx2
import pytest
from typesafe_sdk import RetryPolicy, TypeSafeClient

from engines.contract import Busy, Inquiry
from engines.scripted import Script

from .asks import MIXED, STATE, ask, raw
from .serving import KEY, Gateway, Watched, thread
from .sockets import line, posted
from .wellformed import decision, refusal

_ACCESS = logging.getLogger("tiergate.access")


class _Log(logging.Handler):
    """Tells when a request has ended with a status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self._status = status
        self.seen = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.__dict__["status"] == self._status:
            self.seen.release()


@pytest.fixture
def left() -> Iterator[threading.Semaphore]:
    """Released once per request whose caller left."""
    log = _Log(499)
    _ACCESS.addHandler(log)
    level = _ACCESS.level
    _ACCESS.setLevel(logging.INFO)
    yield log.seen
    _ACCESS.setLevel(level)
    _ACCESS.removeHandler(log)


def _post(gateway: Gateway, **headers: str) -> httpx.Response:
    return httpx.post(
        f"{gateway.url}/v1/systemone", json=ask(), headers=headers, timeout=20, trust_env=False
    )


@contextmanager
def _full(gateway: Gateway) -> Iterator[httpx.Response]:
    """A gateway with `max_waiting=1` that is full, and the refusal that shows it.

    One call is being read, one waits, one was refused; the first two end well on leaving.
    """
    with ThreadPoolExecutor(3) as callers:
        read = callers.submit(_post, gateway)
        gateway.engine.await_read()
        others = {callers.submit(_post, gateway) for _ in range(2)}
        done, waiting = wait(others, timeout=20, return_when=FIRST_COMPLETED)
        yield done.pop().result()
        for call in (read, *waiting):
            assert call.result().status_code == 200


def test_t37_the_sdk_succeeds_on_its_second_attempt_after_an_overload() -> None:
    hold = threading.Event()
    statuses: list[int] = []
    counts: list[str | None] = []

    def asked(request: httpx2.Request) -> None:
        counts.append(request.headers.get("x-typesafe-retry-count"))

    def told(response: httpx2.Response) -> None:
        statuses.append(response.status_code)
        hold.set()

    with (
        thread(Watched(hold=hold), max_waiting=1) as gateway,
        _full(gateway),
        TypeSafeClient(
            api_key=KEY,
            base_url=gateway.url,
            http_client=httpx2.Client(event_hooks={"request": [asked], "response": [told]}),
            retry=RetryPolicy(max_retries=2),
        ) as client,
    ):
        answered = client.system_one(state=STATE, questions=MIXED)

    assert list(answered.answers) == list(MIXED)
    assert (statuses, counts) == ([529, 200], [None, "1"])


def test_t37_an_overload_says_when_to_come_back() -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold), max_waiting=1) as gateway, _full(gateway) as response:
        alive = httpx.get(f"{gateway.url}/health", timeout=5, trust_env=False)
        hold.set()

    assert response.status_code == 529
    assert refusal(response.content)["detail"]["error_type"] == "overloaded_error"
    assert 1 <= int(response.headers["retry-after-ms"]) <= 10_000
    assert 1 <= int(response.headers["retry-after"]) <= 10
    assert response.headers["x-typesafe-request-id"]
    assert alive.status_code == 200


@pytest.mark.parametrize("hint_s", [0.0, 0.3, 29.0, 30.0, 3600.0, math.inf])
def test_t38_no_hint_is_so_long_that_the_sdk_gives_up(hint_s: float) -> None:
    class Reluctant(Watched):
        def prepare(self, inquiry: Inquiry) -> Any:
            raise Busy("not now", retry_after_s=hint_s)

    with thread(Reluctant()) as gateway:
        response = _post(gateway)

    assert response.status_code == 529
    assert 1 <= int(response.headers["retry-after-ms"]) <= 10_000
    assert 1 <= int(response.headers["retry-after"]) <= 10


def test_t40_a_caller_who_leaves_the_queue_is_never_read(left: threading.Semaphore) -> None:
    hold = threading.Event()
    with (
        thread(Watched(hold=hold), log={"access": True}) as gateway,
        ThreadPoolExecutor(1) as callers,
    ):
        first = callers.submit(_post, gateway)
        gateway.engine.await_read()
        with line(gateway.address) as leaver:
            leaver.send(posted(raw()))
        assert left.acquire(timeout=10)
        hold.set()
        first_status = first.result().status_code
        last_status = _post(gateway).status_code
        reads = gateway.engine.reads

    assert (first_status, last_status) == (200, 200)
    assert reads == 2


def test_t40_a_caller_who_leaves_while_being_read_frees_the_lane(
    left: threading.Semaphore,
) -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold), log={"access": True}) as gateway:
        with line(gateway.address) as leaver:
            leaver.send(posted(raw()))
            gateway.engine.await_read()
        assert left.acquire(timeout=10)
        hold.set()
        status = _post(gateway).status_code

    assert status == 200


def test_t40_a_late_answer_is_504_and_what_waited_is_never_read() -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold), server={"deadline_s": 0.3}) as gateway:
        late = [_post(gateway, **{"x-typesafe-retry-count": str(i)}) for i in range(3)]
        hold.set()
        while (afterwards := _post(gateway).status_code) == 529:
            pass
        reads = gateway.engine.reads

    # Nobody waits a third time for a model that has been silent for longer than anybody waits.
    assert [one.status_code for one in late] == [504, 504, 529]
    types = [refusal(one.content)["detail"]["error_type"] for one in late]
    assert types == ["timeout_error", "timeout_error", "overloaded_error"]
    assert afterwards == 200
    assert reads == 2


def _weights(*values: float) -> Script:
    return lambda _, __: list(values)


def _raising(error: Exception) -> Script:
    def script(_: Any, __: Any) -> Sequence[float]:
        raise error

    return script


@pytest.mark.parametrize(
    "script",
    [
        _weights(math.nan, 0.0),
        _weights(0.0, math.inf),
        _weights(-math.inf, 0.0),
        _weights(0.0),
        _weights(0.0, 0.0, 0.0),
        _weights(),
        _raising(RuntimeError("/secret/path and the caller's text")),
        _raising(MemoryError()),
    ],
    ids=["NaN", "inf", "-inf", "too few", "too many", "none", "exception", "no memory"],
)
def test_t41_an_engine_that_fails_is_a_500_in_json_that_tells_nothing(script: Script) -> None:
    body = ask({"refund": MIXED["refund"]})

    with thread(Watched(script=script)) as gateway:
        response = httpx.post(f"{gateway.url}/v1/systemone", json=body, trust_env=False)
        health = httpx.get(f"{gateway.url}/health", trust_env=False)

    assert response.status_code == 500
    assert refusal(response.content)["detail"]["error_type"] == "server_error"
    assert "NaN" not in response.text
    assert "secret" not in response.text
    assert response.headers["x-typesafe-request-id"]
    assert health.status_code == 200


@pytest.mark.parametrize(
    "script",
    [_weights(1e308, -1e308), _weights(-800.0, 800.0), _weights(0.0, 0.0), _weights(5e-324, 0.0)],
    ids=["huge", "far apart", "equal", "denormal"],
)
def test_t41_extreme_but_finite_weights_are_answered_well_formed(script: Script) -> None:
    body = ask(
        {
            "n": MIXED["refund"],
            "c": {"type": "choice", "criteria": {"a": None, "b": None}},
            "s": {"type": "score", "criteria": ["low", "high"]},
        }
    )

    with thread(Watched(script=script)) as gateway:
        response = httpx.post(f"{gateway.url}/v1/systemone", json=body, trust_env=False)

    assert response.status_code == 200
    decision(body, response.content)


@pytest.mark.parametrize("accepted", ["identity", "gzip", "zstd, gzip", "*;q=0", ""])
def test_t42_an_answer_is_compressed_only_when_the_caller_takes_it(accepted: str) -> None:
    with thread(Watched()) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw(), f"Accept-Encoding: {accepted}", "Connection: close"))
        reply = connection.reply()

    assert reply.status == 200
    assert reply.headers.get("content-encoding", "identity") in ("identity", *accepted.split(", "))


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/models", "/ready"])
def test_a_cold_gateway_says_503_and_when_to_come_back(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.serving.install", _nothing)

    with thread(Watched()) as gateway:
        method = "POST" if path == "/v1/systemone" else "GET"
        response = httpx.request(
            method, gateway.url + path, content=raw() if method == "POST" else None, trust_env=False
        )

    assert response.status_code == 503
    if path != "/ready":
        assert 1 <= int(response.headers["retry-after-ms"]) <= 10_000
        refusal(response.content)


_nothing: Callable[..., None] = lambda *_: None  # noqa: E731 - a stand-in, not a function
