"""The clients of a soak: visitors who perform acts, uploads that never end, a look at `/health`.

What they were told is kept in a `Notes`; what was not right, as sentences.
"""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from bench.soak_acts import LEFT, OVERLOADED, Act, Acts

_PATIENCE_S = 30.0
_MAX_SENTENCES = 50
_PIECES = 20
_DRIPS_EVERY_S = 0.2
_LOOKS_EVERY_S = 0.05


@dataclass(slots=True)
class Notes:
    """What all clients were told."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    """(act, status) → how often."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Request id of each new answer → the tokens that it says it took."""
    answered_s: list[float] = field(default_factory=list)
    """How long each answer to a request that was sent at once took."""
    health_s: list[float] = field(default_factory=list)
    """The same of `/health`."""
    wrong: list[str] = field(default_factory=list)
    """What should not have happened; the first of them."""

    def add(self, other: "Notes") -> None:
        """What somebody else was told too."""
        self.statuses += other.statuses
        self.tokens |= other.tokens
        self.answered_s += other.answered_s
        for sentence in other.wrong:
            self.complain(sentence)

    def complain(self, sentence: str) -> None:
        """Something was not right."""
        if len(self.wrong) < _MAX_SENTENCES:
            self.wrong.append(sentence)

    def answered(self, act: Act, request_id: str, reply: "Reply") -> None:
        """An act was answered, rightly or not."""
        self.statuses[act.name, reply.status] += 1
        if reply.status not in act.expected and reply.status != OVERLOADED:
            about = reply.body[:200].decode(errors="replace")
            self.complain(f"'{act.name}' was answered with {reply.status}: {about}")
        if reply.status == OVERLOADED and b"\r\nretry-after-ms: " not in reply.head:
            self.complain(f"'{act.name}' was refused with 529 and no retry-after-ms")
        if reply.status == 200 and b"\r\nx-tiergate-replayed: " not in reply.head:
            self.tokens[request_id] = orjson.loads(reply.body)["usage"]["input_tokens"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One response."""

    status: int
    head: bytes
    """In lower case, from the status line to before the blank line."""
    body: bytes


class Line:
    """A connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port: int) -> "Line":
        """A new connection to a loopback port."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, content: bytes) -> None:
        """Write as fast as the other side reads; it may have stopped doing so with an answer."""
        self.writer.write(content)
        try:
            await self.writer.drain()
        except ConnectionError:
            return

    async def reply(self) -> Reply:
        """The next response.

        Raises:
            OSError, asyncio.IncompleteReadError, TimeoutError: there is none.
        """
        async with asyncio.timeout(_PATIENCE_S):
            head = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].lower()
            length = int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0])
            return Reply(int(head[9:12]), head, await self._reader.readexactly(length))

    async def close(self) -> None:
        """Close, and wait until that is done."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


NO_ANSWER = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Visitor:
    """Performs one act after another, most of them on one connection."""

    def __init__(self, number: int, port: int, key: str, notes: Notes) -> None:
        self._acts = Acts(number)
        self._draw = random.Random(number)
        self._ids = (f"v{number}-{i}" for i in itertools.count())
        self._port = port
        self._key = key
        self._notes = notes
        self._line: Line | None = None

    async def visit(self, stopping: asyncio.Event) -> None:
        """Until it is told to stop."""
        while not stopping.is_set():
            act = self._acts.next()
            request_id = (LEFT if act.manner == "leaves" else "") + next(self._ids)
            try:
                await self._perform(act, request_id)
            except NO_ANSWER as error:
                self._notes.complain(f"'{act.name}' was not answered: {type(error).__name__}")
                await self._hang_up()
        await self._hang_up()

    async def _perform(self, act: Act, request_id: str) -> None:
        request = act.request(request_id, self._key)
        if act.manner == "leaves":
            await self._leave(request)
            return
        line = self._line = self._line or await Line.to(self._port)
        begun_s = time.perf_counter()
        answer = asyncio.create_task(line.reply())  # it may come before everything is sent
        for piece, pause_s in self._pieces(act, request):
            await line.send(piece)
            if pause_s:
                await asyncio.wait({answer}, timeout=pause_s)
            if answer.done():
                break
        reply = await answer
        if act.manner == "whole" and reply.status == 200:
            self._notes.answered_s.append(time.perf_counter() - begun_s)
        self._notes.answered(act, request_id, reply)
        if b"\r\nconnection: close" in reply.head or act.manner == "slowly":
            await self._hang_up()

    def _pieces(self, act: Act, request: bytes) -> Iterator[tuple[bytes, float]]:
        """Parts of the request, and how long to wait after each."""
        if act.manner == "whole":
            yield request, 0.0
            return
        length, pause_s = len(request) // _PIECES + 1, self._draw.uniform(0.01, 0.15)
        for at in range(0, len(request), length):
            yield request[at : at + length], pause_s

    async def _leave(self, request: bytes) -> None:
        """Send all or some of it, wait for a moment and be gone."""
        line = await Line.to(self._port)
        whole = self._draw.random() < 0.7
        await line.send(request if whole else request[: self._draw.randrange(len(request))])
        await asyncio.sleep(self._draw.choice([0.0, 0.002, 0.01, 0.1]))
        await line.close()

    async def _hang_up(self) -> None:
        if self._line is not None:
            await self._line.close()
            self._line = None


async def drip(port: int, key: str, notes: Notes, stopping: asyncio.Event) -> None:
    """One upload after another that sends a byte now and then, until it is cut off."""
    act = Act("drip", b"", frozenset({408}))
    head = act.request("drip", key).replace(b"Content-Length: 0", b"Content-Length: 1000000")
    while not stopping.is_set():
        line = await Line.to(port)
        try:
            await line.send(head)
            answer = asyncio.create_task(line.reply())
            while not answer.done() and not stopping.is_set():
                await line.send(b" ")
                await asyncio.wait({answer}, timeout=_DRIPS_EVERY_S)
            if answer.done():
                notes.answered(act, "drip", answer.result())
            answer.cancel()
            await asyncio.wait({answer})
        except NO_ANSWER as error:
            notes.complain(f"an endless upload was not refused: {type(error).__name__}")
        finally:
            await line.close()


async def look(port: int, notes: Notes, stopping: asyncio.Event) -> None:
    """Ask for `/health` on a new connection again and again."""
    while not stopping.is_set():
        begun_s = time.perf_counter()
        try:
            line = await Line.to(port)
            await line.send(b"GET /health HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n")
            reply = await line.reply()
            await line.close()
        except NO_ANSWER as error:
            notes.complain(f"/health was not answered: {type(error).__name__}")
            continue
        notes.health_s.append(time.perf_counter() - begun_s)
        if reply.status != 200:
            notes.complain(f"/health was answered with {reply.status}")
        await asyncio.sleep(_LOOKS_EVERY_S)
