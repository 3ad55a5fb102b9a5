"""Uploads that never end: they are cut off, and keep nobody from being answered."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from .asks import ask, raw
from .serving import SCRIPTED, Gateway, Watched, process, thread
from .sockets import Line, line, posted
from .wellformed import decision, refusal

UPLOADS = 200
HEAD = posted(b"").replace(b"Content-Length: 0", b"Content-Length: 1900000")


@pytest.fixture(scope="module")
def impatient() -> Iterator[Gateway]:
    """A gateway that gives a body a second."""
    with thread(Watched(), server={"body_deadline_s": 1.0}) as gateway:
        yield gateway


def test_health_and_small_requests_are_answered_beside_two_hundred_slow_uploads(
    impatient: Gateway,
) -> None:
    with ExitStack() as stack, httpx.Client(base_url=impatient.url, trust_env=False) as client:
        uploads: list[Line] = [stack.enter_context(line(impatient.address)) for _ in range(UPLOADS)]
        for upload in uploads:
            upload.send(HEAD, b'{"state": "')
        health = [client.get("/health").status_code for _ in range(20)]
        answered = client.post("/v1/systemone", content=raw())
        for upload in uploads:
            upload.send(b"x")
        refused = [upload.reply() for upload in uploads]

    assert health == [200] * 20
    decision(ask(), answered.content)
    assert {one.status for one in refused} == {408}
    assert {one.headers["connection"] for one in refused} == {"close"}
    assert refusal(refused[0].body)["detail"]["error_type"] == "timeout_error"


def test_heads_that_never_end_keep_nobody_from_being_answered(impatient: Gateway) -> None:
    with ExitStack() as stack:
        for _ in range(UPLOADS):
            stack.enter_context(line(impatient.address)).send(b"POST /v1/systemone HTTP/1.1\r\nX-")
        answered = httpx.post(f"{impatient.url}/v1/systemone", content=raw(), trust_env=False)

    decision(ask(), answered.content)


def test_silent_connections_beyond_the_soft_limit_of_descriptors_keep_nobody_out(
    tmp_path: Path,
) -> None:
    few = ("bash", "-c", 'ulimit -Sn 64 && exec "$0" "$@"')
    with process(SCRIPTED, tmp_path, *few) as address, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(line(address)).send(b"POST /v1/systemone HTTP/1.1\r\nX-")
        health = httpx.get(f"{address.url}/health", trust_env=False)

    assert health.status_code == 200


def test_slow_uploads_leave_nothing_of_the_shared_memory_taken() -> None:
    limits = {"max_body_bytes": 100_000, "max_bodies_bytes": 400_000}
    late = {"body_deadline_s": 0.3}
    large = raw(ask(state="x" * 80_000))
    with thread(Watched(), limits=limits, server=late) as gateway, ExitStack() as stack:
        uploads = [stack.enter_context(line(gateway.address)) for _ in range(5)]
        for upload in uploads:
            upload.send(posted(large)[:-10])
        statuses = sorted(upload.reply().status for upload in uploads)
        afterwards = [
            httpx.post(f"{gateway.url}/v1/systemone", content=large, trust_env=False).status_code
            for _ in range(5)
        ]

    assert statuses == [408] * 5
    assert afterwards == [200] * 5
