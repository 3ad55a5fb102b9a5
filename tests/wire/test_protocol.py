"""Heads at the socket: caps, deadlines, upgrades, and refusals in JSON."""

import json
import threading

import pytest

from gateway import protocol

from .asks import ask, raw
from .serving import Address, Watched, thread
from .sockets import exchange, line, posted
from .wellformed import decision, refusal

_H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")


@pytest.mark.parametrize(
    "offer",
    [_H2C, ("Connection: Upgrade", "Upgrade: websocket"), ("Connection: upgrade", "Upgrade: x")],
    ids=["h2c", "websocket", "unknown"],
)
def test_a_body_beside_an_offered_upgrade_is_read(
    scripted: Address, offer: tuple[str, ...]
) -> None:
    with line(scripted) as connection:
        connection.send(posted(raw(), *offer), posted(raw()))
        replies = [connection.reply() for _ in range(2)]

    assert [reply.status for reply in replies] == [200, 200]
    for reply in replies:
        decision(ask(), reply.body)


def test_a_body_beside_an_offered_upgrade_may_come_in_pieces(scripted: Address) -> None:
    sent = posted(raw(), *_H2C)

    with line(scripted) as connection:
        for i in range(0, len(sent), 10):
            connection.send(sent[i : i + 10])
        reply = connection.reply()

    assert reply.status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nX-Long: " + b"a" * 1_000_000,
        b"GET /health HTTP/1.1\r\n" + b"X-Many: a\r\n" * 200_000,
        b"GET /" + b"a" * 1_000_000,
    ],
    ids=["long header", "many headers", "long path"],
)
def test_a_head_without_end_is_refused_and_not_kept(scripted: Address, head: bytes) -> None:
    with line(scripted) as connection:
        connection.send(head)
        reply = connection.reply()

    assert reply.status in (400, 431)
    assert reply.headers["x-typesafe-request-id"]
    refusal(reply.body)


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /health HTTP/1.1\r\nX: "])
def test_a_head_that_trickles_in_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_DEADLINE_S", 0.3)

    with thread(Watched()) as gateway, line(gateway.address) as connection:
        connection.send(sent)
        said = connection.reply().status if sent.startswith(b"GET") else None
        closed = connection.closed()

    assert said in (None, 408)
    assert closed


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"POST /v1/systemone HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/systemone HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/systemone HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_in_json(scripted: Address, sent: bytes) -> None:
    with line(scripted) as connection:
        connection.send(sent)
        reply = connection.reply()
        closed = connection.closed()

    assert reply.status == 400
    assert reply.headers["x-typesafe-request-id"]
    refusal(reply.body)
    assert closed


def test_garbage_behind_a_request_does_not_take_its_answer() -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold)) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw()))
        gateway.engine.await_read()
        connection.send(b"\0 garbage \0\r\n\r\n")
        hold.set()
        reply = connection.reply()
        closed = connection.closed()

    assert reply.status == 200
    assert json.loads(reply.body)["answers"]
    assert closed


def test_a_long_upload_is_not_ended_by_the_deadline_of_heads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "HEAD_DEADLINE_S", 0.3)
    hold = threading.Event()
    with thread(Watched(hold=hold)) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw()))
        gateway.engine.await_read()
        threading.Timer(0.6, hold.set).start()
        reply = connection.reply()

    assert reply.status == 200


def test_an_ordinary_request_is_untouched(scripted: Address) -> None:
    assert exchange(scripted, posted(raw(), "X-Long: " + "a" * 30_000)).status == 200
