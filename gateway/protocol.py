"""HTTP/1 at the socket: uvicorn's protocol with a cap and a deadline on heads, refusing in JSON.

Requests that offer an upgrade (h2c, WebSockets) are read as if they offered none; llhttp alone
would lose their bodies.
"""

import asyncio
import secrets
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.dialects import systemone
from gateway.errors import STATUS, Kind, Problem
from gateway.middleware import ID_HEADER

MAX_HEAD_BYTES = 65_536
"""Longest request line and headers together; counted from the second read on, so a little more."""
HEAD_DEADLINE_S = 30.0
"""Longest time a head may take to arrive, and a new connection may stay silent."""

_HOP = (b"upgrade", b"http2-settings", b"connection")


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._deaf = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._head_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.send_400_response("The request is not well-formed HTTP.")
            return
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse("head_too_large", f"The head is longer than {MAX_HEAD_BYTES} bytes.")
        if self._head_timer is None and (self._in_head or not self._busy()):
            self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._head_late)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no HTTP; called by uvicorn too."""
        self._refuse("bad_request", msg)

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_head_timer()
        if self.parser.should_upgrade():
            return
        for name, value in self.headers:
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise ValueError("only chunked is understood")  # becomes a parser error: 400
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.parser.should_upgrade():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
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
        if self._busy() and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        status = HTTPStatus(STATUS[kind])
        body = systemone.encode_problem(Problem(kind, message))
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"{ID_HEADER.decode()}: req_{secrets.token_hex(12)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
