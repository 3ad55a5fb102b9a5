"""Callers who send and send, and do not read what they are told."""

import socket
import threading

import pytest

from gateway import protocol, serving

from .asks import raw
from .serving import Address, Watched, thread
from .sockets import exchange, line, posted
from .wellformed import refusal

_LOOK = b"GET /health HTTP/1.1\r\nHost: gateway\r\n\r\n"
_CHUNKED = b"POST /v1/systemone HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n"


def _poured(connection: socket.socket, unit: bytes) -> bool:
    """Whether the other side ended the connection before it stopped taking any more for a while."""
    try:
        while True:
            connection.sendall(unit)
    except TimeoutError:
        return False
    except (BrokenPipeError, ConnectionResetError):
        return True


@pytest.mark.parametrize(
    "sent",
    [
        b"0\r\n" + b"X-Many: a\r\n" * 500_000,
        b"0\r\nX-Long: " + b"a" * 5_000_000,
        b"1;" + b"x" * 5_000_000,
    ],
    ids=["many trailers", "a long trailer", "a long extension of a chunk"],
)
def test_what_surrounds_a_body_is_no_longer_than_a_head(scripted: Address, sent: bytes) -> None:
    with line(scripted) as connection:
        connection.send(_CHUNKED, sent)
        reply = connection.reply()

    assert reply.status == 431
    assert "trailer" in refusal(reply.body)["detail"]["message"]


def test_a_trailer_is_no_header(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tiergate.access")
    body = b"2\r\n{}\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    trusting = {"trusted_proxies": ["127.0.0.1"]}
    with thread(Watched(), server=trusting, log={"access": True}) as gateway:
        reply = exchange(gateway.address, _CHUNKED + body)

    assert reply.status == 422
    assert [vars(record)["client"] for record in caplog.records] == ["127.0.0.1"]


def test_trailers_behind_an_early_refusal_end_the_connection(locked: Address) -> None:
    with line(locked) as connection:
        connection.send(_CHUNKED + b"0\r\n")
        reply = connection.reply()
        connection.send(b"zz zz\r\n\0")
        closed = connection.closed()

    assert reply.status == 403
    assert closed  # and not a second answer, which a front would take for the next request's


def test_more_requests_than_may_wait_are_answered_as_far_as_they_may() -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold)) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw()))
        gateway.engine.await_read()
        connection.send(_LOOK * 5000)
        hold.set()
        statuses = [connection.reply().status for _ in range(1 + protocol.MOST_PIPELINED)]
        closed = connection.closed()

    assert set(statuses) == {200}
    assert closed


def test_a_broken_request_is_refused_in_its_turn() -> None:
    hold = threading.Event()
    with thread(Watched(hold=hold)) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw()))
        gateway.engine.await_read()
        connection.send(_LOOK + _CHUNKED + b"zz\r\n")
        hold.set()
        statuses = [connection.reply().status for _ in range(3)]
        closed = connection.closed()

    assert statuses == [200, 200, 400]
    assert closed


def test_nothing_more_is_read_while_requests_wait() -> None:
    class Transport:
        reading = True

        def pause_reading(self) -> None:
            self.reading = False

        def resume_reading(self) -> None:
            self.reading = True

    transport, waiting = Transport(), ["a request"]
    flow = protocol._Flow(transport, waiting)  # type: ignore[arg-type]
    flow.pause_reading()

    flow.resume_reading()
    paused = not transport.reading
    waiting.clear()
    flow.resume_reading()

    assert paused
    assert transport.reading


def test_a_caller_who_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "UNREAD_DEADLINE_S", 0.5)
    monkeypatch.setattr(serving, "_LOOK_TICKS", 1)
    with (
        thread(Watched()) as gateway,
        socket.create_connection((gateway.address.host, gateway.address.port), 5) as deaf,
    ):
        given_up = _poured(deaf, _LOOK)
        lives = exchange(gateway.address, _LOOK).status == 200

    assert given_up
    assert lives


def test_a_caller_who_reads_slowly_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "UNREAD_DEADLINE_S", 0.5)
    monkeypatch.setattr(serving, "_LOOK_TICKS", 1)
    # More than the kernel's buffers on both sides hold.
    names = {f"{i} {'x' * 4000}": None for i in range(200)}
    question = {"type": "choice", "criteria": names}
    body = {"state": "", "questions": {f"q{i}": question for i in range(16)}}
    pause = threading.Event()
    with thread(Watched()) as gateway, line(gateway.address) as connection:
        connection.send(posted(raw(body)))
        slowly = 0
        while slowly < 12_000_000 and (piece := connection._connection.recv(400_000)):
            slowly += len(piece)
            pause.wait(0.04)

    assert slowly >= 12_000_000
