"""The load: it reads every answer and stops at a wrong byte."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from bench import load

BODY = b'{"answers":{"q":0.25}}'
Speak = Callable[[int], bytes]
"""How many requests came before → the bytes of the answer."""


def whole(body: bytes, *, status: str = "200 OK", version: str = "1.1") -> bytes:
    head = f"HTTP/{version} {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Speaker(asyncio.Protocol):
    """Answers whatever arrives with the next bytes of a script."""

    def __init__(self, speak: Speak, heard: Iterator[int], keeps: bool) -> None:
        self._speak = speak
        self._heard = heard
        self._keeps = keeps
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        answer = self._speak(next(self._heard))
        for piece in (answer[:30], answer[30:]):
            self._transport.write(piece)
        if not self._keeps or not answer:
            self._transport.close()


class _Silent(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Goes nowhere."""


@asynccontextmanager
async def server(speak: Speak, *, keeps: bool = True) -> AsyncIterator[int]:
    """A loopback server that answers request after request by `speak`; its port."""
    heard = itertools.count()
    speakers: list[_Speaker] = []

    def speaker() -> _Speaker:
        speakers.append(_Speaker(speak, heard, keeps))
        return speakers[-1]

    loop = asyncio.get_running_loop()
    async with await loop.create_server(speaker, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1]
        for one in speakers:
            await one.lost.wait()


def ask(port: int, answer: bytes | None = BODY) -> load.Ask:
    return load.Ask(port, load.request("/health"), answer)


async def test_one_answer_alone_is_its_body() -> None:
    async with server(lambda _: whole(BODY)) as port:
        body = await load.answer(ask(port, None))

    assert body == BODY


async def test_every_client_keeps_asking_until_told_to_stop() -> None:
    async with server(lambda _: whole(BODY)) as port:
        outcome = await load.load(ask(port), 4, lambda answered: answered >= 100)

    assert outcome.answered >= 100
    assert outcome.wall_s > 0


async def test_a_single_wrong_byte_ends_the_load() -> None:
    wrong = BODY.replace(b"0.25", b"0.26")

    async with server(lambda before: whole(wrong if before == 50 else BODY)) as port:
        with pytest.raises(load.WrongAnswer, match=r"byte 19 differs.*0\.26.*0\.25"):
            await load.load(ask(port), 4, lambda answered: answered >= 1000)


async def test_an_answer_that_is_too_short_ends_the_load() -> None:
    async with server(lambda _: whole(BODY[:-1])) as port:
        with pytest.raises(load.WrongAnswer, match=f"byte {len(BODY) - 1} differs"):
            await load.answer(ask(port))


async def test_another_status_is_wrong_even_with_the_right_body() -> None:
    async with server(lambda _: whole(BODY, status="429 Too Many Requests")) as port:
        with pytest.raises(load.WrongAnswer, match="status 429"):
            await load.answer(ask(port))


async def test_a_connection_closed_without_an_answer_is_wrong() -> None:
    async with server(lambda _: b"") as port:
        with pytest.raises(load.WrongAnswer, match="closed without an answer"):
            await load.answer(ask(port))


async def test_a_server_that_closes_after_each_answer_is_asked_on_new_connections() -> None:
    async with server(lambda _: whole(BODY, version="1.0"), keeps=False) as port:
        outcome = await load.load(ask(port), 2, lambda answered: answered >= 10)

    assert outcome.answered >= 10


async def test_an_answer_in_pieces_is_put_together() -> None:
    wire = load.Wire()
    wire.connection_made(_Silent())
    waiting = asyncio.ensure_future(wire.exchange(b""))
    await asyncio.sleep(0)

    for i in range(len(whole(BODY))):
        assert not waiting.done()
        wire.data_received(whole(BODY)[i : i + 1])

    head, body = await waiting
    assert head.startswith(b"HTTP/1.1 200")
    assert body == BODY


async def test_what_a_late_answer_delays_counts_as_late() -> None:
    def speak(before: int) -> bytes:
        if before == 3:
            time.sleep(0.2)
        return whole(BODY)

    async with server(speak) as port:
        took_s = await load.probe(ask(port), 10, every_s=0.01)

    assert len(took_s) == 10
    assert sum(1 for s in took_s if s > 0.1) >= 5  # due while the server was stuck


async def test_a_key_is_sent_as_a_bearer() -> None:
    sent = load.request("/v1/systemone", b"{}", key="secret")

    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/systemone HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret" in head.split(b"\r\n")
    assert b"Content-Length: 2" in head.split(b"\r\n")
    assert body == b"{}"
