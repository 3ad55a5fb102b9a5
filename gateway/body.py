"""From a socket to the bytes of a request: byte caps, a deadline, content codings, media types.

Whatever is refused is drained first where that is affordable, so that the caller reads an answer
and not a reset connection.
"""

import asyncio
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from starlette.types import Receive

from gateway.errors import Refusal, refusal
from gateway.leash import CallerLeft, Leash
from gateway.room import Room, Share

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")

WHOLE = "tiergate.whole"
"""Set in the scope of a request whose body has arrived: to receive it takes no time."""
INLINE_BYTES = 262_144
"""Decoding or parsing more than this happens on a thread, so that the event loop stays free."""
_SLICE_BYTES = 65_536
_PART_BYTES = 1_048_576
"""Most that is decoded before it is counted."""
_MAX_MEMBERS = 64
"""Members of one compressed body; clients send one."""
_DRAINED_BODIES = 4
"""A body that is too large is read to its end if that is at most this many times the cap."""
_ZSTD_WINDOW_LOG_MAX = 23
"""RFC 8878 (section 3.1.1.1.2) asks decoders for 8 MiB windows; more only costs memory."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What reading a body may cost."""

    max_bytes: int
    """As sent, and again after decoding."""
    deadline_s: float
    """From the end of the head to the end of the body."""
    room: Room
    """For all of them together."""


@dataclass(frozen=True, slots=True)
class Head:
    """The headers that say what a body is, lower-cased where case means nothing."""

    media_type: str
    boundary: str | None
    coding: str
    """`zstd`, `gzip`, `x-gzip`, or empty for none."""


def head(headers: dict[bytes, bytes]) -> Head:
    """What the headers say of the body.

    Raises:
        Refusal: 415 for a media type or a content coding that is not understood.
    """
    return _head(headers.get(b"content-type", b""), headers.get(b"content-encoding", b"identity"))


@lru_cache(maxsize=32)
def _head(content_type: bytes, content_encoding: bytes) -> Head:
    media_type, parameters = _media_type(content_type.decode("latin-1"))
    if media_type == "multipart/form-data":
        if not parameters.get("boundary"):
            raise refusal("bad_request", "The multipart Content-Type has no boundary parameter.")
    elif media_type and not (media_type == "application/json" or media_type.endswith("+json")):
        raise refusal(
            "media_type",
            "Unsupported Content-Type; send application/json or multipart/form-data.",
        )
    elif parameters.get("charset", "utf-8").lower() not in ("utf-8", "utf8", "us-ascii"):
        raise refusal("media_type", "Unsupported charset; JSON is sent as UTF-8.")
    coding = content_encoding.decode("latin-1").strip().lower()
    if coding not in ("", "identity", "zstd", "gzip", "x-gzip"):
        raise refusal(
            "body_coding",
            "Unsupported Content-Encoding; send zstd, gzip or none.",
            **{"accept-encoding": "zstd, gzip, identity"},
        )
    return Head(media_type, parameters.get("boundary"), "" if coding == "identity" else coding)


async def read_body(
    about: Head, receive: Receive, limits: BodyLimits, share: Share, *, whole: bool = False
) -> bytes:
    """The decoded body; `share` holds as many bytes. See `WHOLE`: it needs no deadline.

    Raises:
        Refusal: 408 too slow, 413 too large (as sent or decoded), 400 not decodable, 529 no memory
            for it at the moment.
        CallerLeft: the caller hung up.
    """

    if whole:
        sent = await _received(receive, limits.max_bytes, share)
    else:
        with Leash(limits.deadline_s, lambda: _late(limits.deadline_s)):
            sent = await _received(receive, limits.max_bytes, share)
    if not about.coding:
        return sent
    content = await _decoded(sent, about.coding, limits.max_bytes, share)
    share.shrink(len(sent))
    return content


async def offload_if_large(size_bytes: int, work: Callable[[], T]) -> T:
    """The result of `work`, run here when small and on a thread when it would hold up the loop."""
    return work() if size_bytes <= INLINE_BYTES else await asyncio.to_thread(work)


def _media_type(header: str) -> tuple[str, dict[str, str]]:
    """Lower-cased media type and its parameters."""
    media_type, *rest = header.split(";")
    parameters = {}
    for item in rest:
        name, _, value = item.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return media_type.strip().lower(), parameters


async def _received(receive: Receive, max_bytes: int, share: Share) -> bytes:
    chunks: list[bytes] = []
    size = 0
    refused: Refusal | None = None
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerLeft
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            refused = _too_large(max_bytes)
            if size > _DRAINED_BODIES * max_bytes:
                raise _too_large(max_bytes, connection="close")
        elif refused is None:
            refused = _kept(chunk, chunks, share)
        if refused is not None:
            chunks.clear()
            share.empty()
        if not message.get("more_body", False):
            break
    if refused is not None:
        try:
            raise refused
        finally:
            del refused  # it knows this frame, which must not know it: nobody would free them
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _kept(chunk: bytes, chunks: list[bytes], share: Share) -> Refusal | None:
    """Why the chunk could not be put to the others, or `None`."""
    try:
        share.grow(len(chunk))
    except Refusal as full:
        return full
    chunks.append(chunk)
    return None


def _late(deadline_s: float) -> Refusal:
    sentence = f"The request body did not arrive within {deadline_s:g} s."
    return refusal("body_late", sentence, connection="close")


def _too_large(max_bytes: int, **headers: str) -> Refusal:
    return refusal(
        "body_too_large", f"The request body is longer than {max_bytes} bytes.", **headers
    )


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int) -> bytes: ...


async def _decoded(sent: bytes, coding: str, max_bytes: int, share: Share) -> bytes:
    """Small bodies are decoded here; whatever is or grows large, on a thread."""
    stream = _Stream(sent, coding, max_bytes, share)
    if len(sent) > INLINE_BYTES or not stream.decode(INLINE_BYTES):
        await asyncio.to_thread(stream.decode, max_bytes + 1)
    return stream.content


class _Stream:
    """A compressed body being decoded: one or more members, at most `max_bytes` together."""

    def __init__(self, sent: bytes, coding: str, max_bytes: int, share: Share) -> None:
        self._new = _zstd if coding == "zstd" else _gzip
        self._member: _Decompressor = self._new()
        self._members = 1
        self._input = memoryview(sent)
        self._at = 0
        self._max_bytes = max_bytes
        self._share = share
        self.content = b""

    def decode(self, up_to_bytes: int) -> bool:
        """Decode until the end (`True`) or until `up_to_bytes` are there.

        Input goes in by slices and members are counted: what follows a member is copied out of
        its decompressor, which costs the square of the length when members are tiny.

        Raises:
            Refusal: 413 beyond `max_bytes`, 400 for anything that is not whole and well-formed,
                529 where the share cannot grow.
        """
        parts = [self.content]
        size = len(self.content)
        ended = False
        try:
            while size < up_to_bytes and not ended:
                given = self._input[self._at : self._at + _SLICE_BYTES]
                self._at += len(given)
                part = self._member.decompress(given, min(up_to_bytes - size, _PART_BYTES))
                self._share.grow(len(part))
                parts.append(part)
                size += len(part)
                if self._member.eof:
                    ended = self._next_member()
                elif not part and not given:
                    raise EOFError
        except (zstd.ZstdError, zlib.error, EOFError):
            raise refusal(
                "bad_request", "The compressed body is damaged or ends too early."
            ) from None
        self.content = b"".join(parts)
        if size > self._max_bytes:
            raise _too_large(self._max_bytes)
        return ended

    def _next_member(self) -> bool:
        """Go on behind the member that ended; whether nothing follows."""
        self._at -= len(self._member.unused_data)
        if self._at == len(self._input):
            return True
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise refusal("bad_request", f"The compressed body has over {_MAX_MEMBERS} members.")
        self._member = self._new()
        return False


def _zstd() -> _Decompressor:
    limit: dict[Any, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG_MAX}
    return zstd.ZstdDecompressor(options=limit)


class _Gzip:
    """zlib's decompressor with the manners of zstd's: it keeps its unread input."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: memoryview, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def _gzip() -> _Decompressor:
    return _Gzip()
