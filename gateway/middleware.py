"""Pure ASGI around every request: an id and timings on the response, the log, the last resort."""

import itertools
import logging
import re
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.journal import Journal
from gateway.leash import CallerLeft
from gateway.passage import Passage

_ERRORS = logging.getLogger("tiergate")

ID_HEADER = b"x-typesafe-request-id"
"""The only id header that the official SDKs read."""
PASSAGE = "tiergate.passage"
"""Where a scope holds its `Passage`."""

_GIVEN_ID = frozenset((ID_HEADER, b"x-request-id"))
_UNSAFE = re.compile(rb"[^A-Za-z0-9._:-]+")
_MAX_ID_BYTES = 128
_FALLBACK = b'{"detail":{"error_type":"server_error","message":"Internal error."}}'


class RequestMiddleware:
    """Gives each HTTP request an id and answers for whatever nobody else caught."""

    def __init__(self, app: ASGIApp, *, journal: Journal) -> None:
        self._app = app
        self._journal = journal
        # One random draw for all requests: os.urandom gives the interpreter's lock away, and a
        # lane's thread would take it in the middle of every request.
        self._prefix = b"req_" + secrets.token_hex(8).encode()
        self._numbers = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or b"%b%08x" % (self._prefix, next(self._numbers))
        scope["tiergate.request_id"] = request_id
        scope[PASSAGE] = passage = Passage(request_id)
        self._journal.metrics.begun += 1
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (ID_HEADER, request_id),
                    (b"server-timing", passage.server_timing),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except CallerLeft:
            status = 499  # nobody reads an answer; the number is nginx's, for the log only
        except Exception:
            _ERRORS.exception("unhandled", extra={"request_id": request_id.decode()})
            if status:
                raise
            await send_with_id(_START)
            await send_with_id({"type": "http.response.body", "body": _FALLBACK})
        finally:
            self._journal.end(scope, passage, status)


_START: Message = {
    "type": "http.response.start",
    "status": 500,
    "headers": [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_FALLBACK)).encode()),
    ],
}


def _given_id(scope: Scope) -> bytes:
    """The caller's own id without anything but `[A-Za-z0-9._:-]`; empty if there is none."""
    for name, value in scope["headers"]:
        if name in _GIVEN_ID:
            return _UNSAFE.sub(b"", value)[:_MAX_ID_BYTES]
    return b""
