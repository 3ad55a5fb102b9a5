"""Bytes that no client library sends: slow, cut, doubled, malformed, enormous."""

import json
import threading

import pytest

from .asks import ask, raw
from .serving import Address, Watched, thread
from .sockets import exchange, line, posted
from .wellformed import decision, refusal

_HEAD = b"POST /v1/systemone HTTP/1.1\r\nHost: gateway\r\n"
_LAST = "Connection: close"


def _lives(address: Address) -> bool:
    return exchange(address, posted(raw(), _LAST)).status == 200


def test_a_body_that_trickles_in_is_408_at_its_deadline() -> None:
    with (
        thread(Watched(), server={"body_deadline_s": 0.3}) as gateway,
        line(gateway.address) as connection,
    ):
        connection.send(posted(raw())[:-5])
        reply = connection.reply()
        closed = connection.closed()
        lives = _lives(gateway.address)

    assert reply.status == 408
    assert reply.headers["connection"] == "close"
    assert reply.headers["x-typesafe-request-id"]
    assert refusal(reply.body)["detail"]["error_type"] == "timeout_error"
    assert closed
    assert lives


def test_a_deadline_for_the_body_is_no_deadline_for_each_byte() -> None:
    body = raw()
    with (
        thread(Watched(), server={"body_deadline_s": 0.5}) as gateway,
        line(gateway.address) as connection,
    ):
        connection.send(posted(body)[: -len(body)])
        for i in range(len(body)):
            connection.send(body[i : i + 1])
        reply = connection.reply()

    assert reply.status == 200


@pytest.mark.parametrize("sent", [raw(), raw()[:-5]], ids=["whole body", "cut body"])
def test_who_closes_its_half_has_left(sent: bytes) -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold)) as gateway:
        with line(gateway.address) as connection:
            connection.send(posted(raw())[: -len(raw())] + sent)
            connection.half_close()
            closed = connection.closed()
        hold.set()  # before, an answer might have been on its way already
        lives = _lives(gateway.address)

    assert closed
    assert lives


def test_pipelined_requests_are_answered_in_order(scripted: Address) -> None:
    bodies = [ask(state=f"Order {i}") for i in range(8)]

    with line(scripted) as connection:
        connection.send(b"".join(posted(raw(body)) for body in bodies))
        replies = [connection.reply() for _ in bodies]

    answers = [decision(b, r.body) for b, r in zip(bodies, replies, strict=True)]
    alone = [json.loads(exchange(scripted, posted(raw(body))).body) for body in bodies]
    assert [one["answers"]["team"]["choice"] for one in answers] == [
        one["answers"]["team"]["choice"] for one in alone
    ]
    assert len({reply.headers["x-typesafe-request-id"] for reply in replies}) == len(bodies)


def test_a_refusal_leaves_the_connection_usable(scripted: Address) -> None:
    with line(scripted) as connection:
        connection.send(posted(b"{"), posted(raw(), "Content-Encoding: snappy"), posted(raw()))
        statuses = [connection.reply().status for _ in range(3)]

    assert statuses == [422, 415, 200]


def test_chunks_of_every_size_and_a_trailer_are_read(scripted: Address) -> None:
    body = raw()
    chunks = [body[:1], body[1:7], body[7:100], body[100:]]
    framed = b"".join(b"%X;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)

    reply = exchange(
        scripted, _HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\nX-T: 1\r\n\r\n"
    )

    assert reply.status == 200
    decision(ask(), reply.body)


@pytest.mark.parametrize(
    "sent",
    [
        _HEAD + b"Content-Length: -5\r\n\r\n",
        _HEAD + b"Content-Length: five\r\n\r\n",
        _HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        _HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        _HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        _HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        _HEAD + b"X: a\0b\r\n\r\n",
        _HEAD + b"X: a\r\n folded\r\n\r\n",
        _HEAD + b"no colon\r\n\r\n",
        b"POST /v1/systemone HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: gateway\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0" * 100,
        b"hello\r\n\r\n",
    ],
    ids=[
        "negative length",
        "length in words",
        "length beyond 64 bits",
        "two lengths",
        "length and chunks",
        "bad chunk",
        "NUL in a header",
        "folded header",
        "no colon",
        "HTTP 9.9",
        "byte in the path",
        "HTTP/2 preface",
        "TLS hello",
        "NULs",
        "text",
    ],
)
def test_what_is_no_http_is_400_and_the_connection_ends(scripted: Address, sent: bytes) -> None:
    with line(scripted) as connection:
        connection.send(sent)
        reply = connection.reply()
        closed = connection.closed()

    assert reply.status == 400
    assert reply.headers["x-typesafe-request-id"]
    refusal(reply.body)
    assert closed
    assert _lives(scripted)


def test_expect_100_continue_is_answered_before_the_body_is_sent(scripted: Address) -> None:
    body = raw()
    with line(scripted) as connection:
        connection.send(posted(body, "Expect: 100-continue")[: -len(body)])
        interim = connection.reply()
        connection.send(body)
        reply = connection.reply()

    assert interim.status == 100
    assert reply.status == 200
    decision(ask(), reply.body)


def test_without_a_key_nobody_is_told_to_continue(locked: Address) -> None:
    body = raw()
    with line(locked) as connection:
        connection.send(posted(body, "Expect: 100-continue")[: -len(body)])
        reply = connection.reply()

    assert reply.status == 403


def test_a_wrong_key_is_401_and_not_a_reset_however_long_the_body(locked: Address) -> None:
    body = b'"' + b"x" * (40 * 1024 * 1024) + b'"'

    reply = exchange(locked, posted(body, "Authorization: Bearer wrong"))

    assert reply.status == 401
    refusal(reply.body)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_http_1_0_and_1_1_callers_get_the_same_answer(scripted: Address, version: str) -> None:
    with line(scripted) as connection:
        connection.send(posted(raw(), _LAST, version=version))
        reply = connection.reply()
        closed = connection.closed()

    assert reply.status == 200
    assert int(reply.headers["content-length"]) == len(reply.body)
    decision(ask(), reply.body)
    assert closed


@pytest.mark.parametrize(
    "sent",
    [
        posted(raw(), "X-Long: " + "a" * 60_000, _LAST),
        posted(raw(), *(f"X-{i}: b" for i in range(500)), _LAST),
        b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n",
        b"GET /%ff%00%0d%0aX:%20y HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n",
        posted(raw(), "Authorization: Bearer " + "a" * 60_000, _LAST),
        posted(raw(), "Content-Type: application/json; charset=" + "u" * 5000, _LAST),
        posted(raw(), "Content-Type: multipart/form-data; boundary=" + "b" * 5000, _LAST),
        posted(raw(), "Content-Type: multipart/form-data; boundary=\xff", _LAST),
        posted(raw(), "Content-Encoding: " + "gzip, " * 1000, _LAST),
        posted(raw(), "X-Request-Id: \xff\x80", _LAST),
    ],
    ids=[
        "long header",
        "many headers",
        "long path",
        "escapes in the path",
        "options of all",
        "long key",
        "long charset",
        "long boundary",
        "boundary beyond ASCII",
        "many codings",
        "request id beyond ASCII",
    ],
)
def test_odd_heads_are_answered_or_refused_in_json(scripted: Address, sent: bytes) -> None:
    reply = exchange(scripted, sent)

    assert reply.status < 500
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-typesafe-request-id"].isascii()
    json.loads(reply.body)


def test_headers_of_a_caller_cannot_be_split_into_the_answer(scripted: Address) -> None:
    reply = exchange(scripted, posted(raw(), "X-Request-Id: a\tSet-Cookie: b", _LAST))

    assert reply.headers["x-typesafe-request-id"] == "aSet-Cookie:b"


def test_a_body_four_times_the_cap_ends_the_connection() -> None:
    with (
        thread(Watched(), limits={"max_body_bytes": 1024}) as gateway,
        line(gateway.address) as connection,
    ):
        connection.send(posted(b"x" * 5000)[:4300])
        reply = connection.reply()
        lives = _lives(gateway.address)

    assert reply.status == 413
    assert reply.headers["connection"] == "close"
    refusal(reply.body)
    assert lives


def test_a_client_that_vanishes_at_every_byte_leaves_nothing_behind(scripted: Address) -> None:
    whole = posted(raw())

    for end in range(0, len(whole), 29):
        with line(scripted) as connection:
            connection.send(whole[:end])

    assert _lives(scripted)
