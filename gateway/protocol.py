"""HTTP/1 at the socket: uvicorn's protocol with a cap and a deadline on heads, refusing in JSON.

Requests that offer an upgrade (h2c, WebSockets) are read as if they offered none; llhttp alone
would lose their bodies.
"""

import asyncio
import secrets
from collections.abc import Sized
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.body import WHOLE
from gateway.dialects import systemone
from gateway.errors import STATUS, Kind, Problem
from gateway.middleware import ID_HEADER

MAX_HEAD_BYTES = 65_536
"""Longest request line and headers together, and most bytes around a body's chunks and behind them;
counted from the second read on, so a little more."""
HEAD_DEADLINE_S = 30.0
"""Longest time a head may take to arrive, and a new connection may stay silent."""
UNREAD_DEADLINE_S = 60.0
"""Longest time in which a caller may read nothing of an answer that is on its way."""
MOST_PIPELINED = 100
"""Requests that may wait behind another on one connection."""

_HOP = (b"upgrade", b"http2-settings", b"connection")


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = False
        self._in_body = False
        self._told = False
        self._untold_bytes = 0
        self._unread_bytes = 0
        self._unread_since_s = 0.0
        self._head_timer: asyncio.TimerHandle | None = None
        self._deaf = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._head_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self.pipeline.clear()  # they refer to this connection, and it to them
        super().connection_lost(exc)

    def look(self, now_s: float) -> None:
        """Called now and then: ends the connection when nobody reads what is sent on it."""
        unread_bytes = self.transport.get_write_buffer_size()
        if not unread_bytes or unread_bytes < self._unread_bytes or not self._unread_bytes:
            self._unread_since_s = now_s
        elif now_s - self._unread_since_s >= UNREAD_DEADLINE_S:
            self.transport.abort()
        self._unread_bytes = unread_bytes

    def data_received(self, data: bytes) -> None:
        if self._deaf or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._told = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.send_400_response("The request is not well-formed HTTP.")
            return
        self._untold_bytes = 0 if self._told else self._untold_bytes + len(data)
        if self._untold_bytes > MAX_HEAD_BYTES:
            what = "trailer" if self._in_body else "head"
            self._refuse("head_too_large", f"The {what} is longer than {MAX_HEAD_BYTES} bytes.")
        if self._head_timer is None and (self._in_head or not self._busy()):
            self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._head_late)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no HTTP; called by uvicorn too."""
        self._refuse("bad_request", msg)

    def on_message_begin(self) -> None:
        self._in_head = self._told = True
        self._in_body = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._told = True
        self._stop_head_timer()
        if self.parser.should_upgrade():
            return
        for name, value in self.headers:
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise ValueError("only chunked is understood")  # becomes a parser error: 400
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError("too many at once")
        super().on_headers_complete()
        self._in_body = True
        self.headers = []  # a trailer is not taken for a header

    def on_body(self, body: bytes) -> None:
        self._told = True
        if not self.parser.should_upgrade():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._told = True
        if not self.parser.should_upgrade():
            self.scope[WHOLE] = True  # type: ignore[literal-required]
            super().on_message_complete()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Feed a new parser with the head, less its offer, and whatever came after it."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("This is no proxy.")
            return
        lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % (n, v) for n, v in self.headers if n not in _HOP]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([*lines, b"", b""]) + rest)

    def _busy(self) -> bool:
        """Whether a request that was read is still being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _head_late(self) -> None:
        self._head_timer = None
        if self._in_head:
            self._refuse("body_late", f"No whole head within {HEAD_DEADLINE_S:g} s.")
        else:
            self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, kind: Kind, message: str) -> None:
        """Answer and close; but what was asked before is answered first, and then closes."""
        self._deaf = True
        FlowControl.resume_reading(self.flow)  # what nobody takes would turn the end into a reset
        if self._busy() and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        if self._in_body and not self._busy():
            self.transport.close()  # it was answered before its body had come to an end
            return
        refusal = _Refusal(kind, message)
        if self.pipeline and self._in_body:
            self.pipeline[0] = (self.cycle, refusal.app)
            return
        lines = b"".join(b"%b: %b\r\n" % header for header in refusal.headers)
        status = HTTPStatus(refusal.status)
        start = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
        self.transport.write(start + lines + b"\r\n" + refusal.body)
        self.transport.close()


class _Refusal:
    """The last answer on a connection."""

    def __init__(self, kind: Kind, message: str) -> None:
        self.status = STATUS[kind]
        self.body = systemone.encode_problem(Problem(kind, message))
        self.headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
            (ID_HEADER, f"req_{secrets.token_hex(12)}".encode()),
            (b"connection", b"close"),
        ]

    async def app(self, _: Any, __: Any, send: Any) -> None:
        """Gives it in the turn of a request that came behind others."""
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


class _Flow(FlowControl):
    """Reads no further while requests wait behind another; they were read at once."""

    def __init__(self, transport: asyncio.Transport, pipeline: Sized) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()
