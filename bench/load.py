"""A load generator that reads what it is told: every answer is compared, byte for byte.

`load` is a closed loop (each client asks again when it was answered) and serves to measure CPU;
`probe` asks at fixed times, whether or not the last answer is there, and serves to measure
latency: what a late answer delays counts as late too.
"""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSES = re.compile(rb"\AHTTP/1\.0|\r\nconnection: *close", re.IGNORECASE)
_SHOWN_BYTES = 60


class WrongAnswer(Exception):
    """A server said something else than it said alone, or nothing."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a loopback port and the answer it must get."""

    port: int
    request: bytes
    """Head and body, ready to be sent."""
    answer: bytes | None = None
    """The exact body of the 200; `None` = whatever it says, to find out."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a load did."""

    answered: int
    wall_s: float


def request(path: str, body: bytes = b"", *, key: str = "") -> bytes:
    """An HTTP/1.1 request: POST of a JSON body, or GET without one."""
    head = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: */*"]
    if key:
        head.append(f"Authorization: Bearer {key}")
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


async def answer(ask: Ask) -> bytes:
    """The body of one answer, asked for alone.

    Raises:
        WrongAnswer: no 200.
    """
    async with asyncio.timeout(30):
        client = _Client(ask)
        try:
            return await client.ask()
        finally:
            await client.close()


async def load(
    ask: Ask, clients: int, done: Callable[[int], bool], *, every_s: float = 0.05
) -> Outcome:
    """Ask with `clients` connections until `done(answered)`, looked at `every_s`.

    Raises:
        WrongAnswer: any answer that is not `ask.answer`, to the byte.
    """
    stopping = asyncio.Event()
    answered = 0

    async def keep_asking() -> None:
        nonlocal answered
        client = _Client(ask)
        try:
            while not stopping.is_set():
                await client.ask()
                answered += 1
        finally:
            await client.close()

    begun_s = time.perf_counter()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(keep_asking())
            while not done(answered):
                await asyncio.sleep(every_s)
            stopping.set()
    except ExceptionGroup as several:
        raise several.exceptions[0] from None  # one wrong answer is enough
    return Outcome(answered, time.perf_counter() - begun_s)


async def probe(ask: Ask, times: int, *, every_s: float) -> list[float]:
    """Seconds from when each of `times` requests was due to its answer, in order.

    Raises:
        WrongAnswer: see `load`.
    """
    client = _Client(ask)
    took_s: list[float] = []
    now_s = time.perf_counter  # uvloop's own clock ticks in milliseconds
    try:
        await client.ask()
        begun_s = now_s()
        for i in range(times):
            due_s = begun_s + i * every_s
            if (early_s := due_s - now_s()) > 0:
                await asyncio.sleep(early_s)
                due_s = now_s()  # a late wake-up of this process is not the server's
            await client.ask()
            took_s.append(now_s() - due_s)
    finally:
        await client.close()
    return took_s


class _Client:
    """Asks the same over and over, on a new connection where the server closes them."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._wire: Wire | None = None

    async def ask(self) -> bytes:
        """The body of the answer to one request."""
        wire = self._wire
        if wire is None or wire.closed:
            loop = asyncio.get_running_loop()
            _, wire = await loop.create_connection(Wire, "127.0.0.1", self._ask.port)
            self._wire = wire
        head, body = await wire.exchange(self._ask.request)
        if (wrong := _wrong(head, body, self._ask.answer)) is not None:
            raise WrongAnswer(wrong)
        return body

    async def close(self) -> None:
        """Close the connection, if there is one, and wait until it is."""
        if self._wire is not None:
            self._wire.close()
            await self._wire.lost.wait()


class Wire(asyncio.Protocol):
    """One connection; one exchange at a time."""

    def __init__(self) -> None:
        self.closed = True
        self.lost = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None
        self._received = b""
        self._waiting: asyncio.Future[tuple[bytes, bytes]] | None = None

    async def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Head and body of the answer."""
        self._waiting = asyncio.get_running_loop().create_future()
        if self._transport is not None and not self.closed:
            self._transport.write(request)
        else:
            self._fail()
        return await self._waiting

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is none by name
        self.closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.lost.set()
        self._fail()

    def _fail(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(WrongAnswer("the connection was closed without an answer"))

    def data_received(self, data: bytes) -> None:
        self._received = received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        if end < 0:
            return
        head, begins = received[:end], end + 4
        length = _LENGTH.search(head)
        if length is not None and len(received) < begins + int(length[1]):
            return
        self._received = b""
        if _CLOSES.search(head):
            self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result((head, received[begins:]))


def _wrong(head: bytes, body: bytes, expected: bytes | None) -> str | None:
    """What is wrong with an answer, or `None`."""
    if head[9:12] != b"200":
        return f"status {head[9:12].decode()}: {body[:200]!r}"
    if expected is None or body == expected:
        return None
    at = next(
        (i for i, (a, b) in enumerate(zip(body, expected, strict=False)) if a != b),
        min(len(body), len(expected)),
    )
    begin = max(0, at - 20)
    return (
        f"byte {at} differs from the answer given alone: "
        f"{body[begin : at + _SHOWN_BYTES]!r} instead of {expected[begin : at + _SHOWN_BYTES]!r}"
    )
