"""Bytes in, nothing out: whatever a target raises is a finding.

A parser may refuse: the mistake of a caller is a `Refusal` with a 4xx, that of an operator a
`ConfigError` that names the file.
"""

import asyncio
import ipaddress
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.types import Message

from gateway.auth import KeyRing
from gateway.body import BodyLimits, head, read_body
from gateway.config import Settings
from gateway.config_file import ConfigError, load
from gateway.dashboard.forms import form_of
from gateway.dialects import outcomes, systemone
from gateway.errors import Refusal
from gateway.labelled import load_rows
from gateway.lines import toml_lines
from gateway.multipart import parts
from gateway.policy_file import load_calibration, load_policy
from gateway.proxies import Proxies
from gateway.room import Room
from gateway.wiring_limits import ask_limits

_ASK_LIMITS = ask_limits(Settings())
_RING = KeyRing({"team": "a-key-that-is-long-enough-0123456789"})
_MAX_BODY_BYTES = 100_000


def _refusable(work: Callable[[], Any]) -> None:
    """Nothing when the work succeeds or is refused as a caller's mistake."""
    try:
        work()
    except Refusal as refused:
        if not 400 <= refused.problem.status < 500:
            raise
        systemone.encode_problem(refused.problem)


def _halves(fuzzed: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the first NUL."""
    first, _, second = fuzzed.partition(b"\0")
    return first, second


def of_head(fuzzed: bytes) -> None:
    """The headers that say what a body is."""
    media_type, coding = _halves(fuzzed)
    _refusable(lambda: head({b"content-type": media_type, b"content-encoding": coding}))


def of_key(fuzzed: bytes) -> None:
    """An `Authorization` header; a wrong key is never taken for a right one."""
    _refusable(lambda: _RING.authenticate(fuzzed, 0.0))


def of_body(fuzzed: bytes) -> None:
    """A coding, a size of chunks, and what is sent; however it is cut, it means the same."""
    coding = (b"zstd", b"gzip", b"identity")[fuzzed[0] % 3 if fuzzed else 2]
    size = 1 + (fuzzed[1] if len(fuzzed) > 1 else 0)
    sent = fuzzed[2:]
    cut = [sent[at : at + size] for at in range(0, len(sent), size)] or [b""]
    whole, pieces = _read(coding, [sent]), _read(coding, cut)
    assert whole == pieces, "how a body is cut into chunks changes what it is"


def _read(coding: bytes, chunks: list[bytes]) -> bytes | int:
    """The decoded body, or the status of its refusal."""
    messages = [
        {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1}
        for i, chunk in enumerate(chunks)
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def read() -> bytes:
        with room.share() as share:
            content = await read_body(head({b"content-encoding": coding}), receive, limits, share)
            assert room.taken_bytes == len(content) <= _MAX_BODY_BYTES
            return content

    room = Room(4 * _MAX_BODY_BYTES)
    limits = BodyLimits(_MAX_BODY_BYTES, 60.0, room)
    try:
        return asyncio.run(read())
    except Refusal as refused:
        if not 400 <= refused.problem.status < 500:
            raise
        return refused.problem.status
    finally:
        assert room.taken_bytes == 0


def of_multipart(fuzzed: bytes) -> None:
    """A boundary and a body."""
    boundary, body = _halves(fuzzed)
    _refusable(lambda: parts(body, boundary.decode("latin-1") or "edge", max_assets=3))


def of_ask(fuzzed: bytes) -> None:
    """A body of the System One API; what is decoded is in bounds."""

    def decoded() -> None:
        _, inquiry = systemone.decode(fuzzed, None, _ASK_LIMITS)
        assert 1 <= len(inquiry.questions) <= _ASK_LIMITS.max_questions

    _refusable(decoded)


def of_outcomes(fuzzed: bytes) -> None:
    """A body of outcomes."""
    _refusable(lambda: outcomes.decode(fuzzed))


def of_form(fuzzed: bytes) -> None:
    """A media type and the body of a form of the page."""
    media_type, body = _halves(fuzzed)
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop(0)

    async def read() -> None:
        with limits.room.share() as share:
            await form_of(request, limits, share)

    limits = BodyLimits(_MAX_BODY_BYTES, 60.0, Room(4 * _MAX_BODY_BYTES))
    request = Request({"type": "http", "headers": [(b"content-type", media_type)]}, receive)
    _refusable(lambda: asyncio.run(read()))


def of_forwarded(fuzzed: bytes) -> None:
    """What a trusted proxy says of who asked; the answer is an address, or the proxy's."""
    scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", fuzzed)]}
    found = Proxies(["10.0.0.0/8"]).client_of(scope)
    assert str(ipaddress.ip_address(found)) == found
    assert "%" not in found  # a zone may be any text


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A target that reads a file of this name with the fuzzed content."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    path = folder / name

    def target(fuzzed: bytes) -> None:
        path.write_bytes(fuzzed)
        try:
            read(path)
        except ConfigError as error:
            if str(path) not in str(error):
                raise

    return target


def _settings(path: Path) -> None:
    load(path).values()
    toml_lines(path.read_text(encoding="utf-8"))


def _rows(path: Path) -> None:
    (path.parent / "questions.json").write_text(_QUESTIONS, encoding="utf-8")
    load_rows([path])


_QUESTIONS = '{"rows": {"q": {"type": "noul", "instructions": "?"}}}'

TARGETS: dict[str, Callable[[bytes], None]] = {
    "head": of_head,
    "key": of_key,
    "body": of_body,
    "multipart": of_multipart,
    "ask": of_ask,
    "outcomes": of_outcomes,
    "form": of_form,
    "forwarded": of_forwarded,
    "config": _file("config.toml", _settings),
    "policy": _file("policy.toml", load_policy),
    "calibration": _file("calibration.json", load_calibration),
    "jsonl": _file("rows.jsonl", _rows),
    "csv": _file("rows.csv", _rows),
}
"""Name → target."""
