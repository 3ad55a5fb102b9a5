"""Bodies: caps, deadlines and codings, without a socket."""

import asyncio
import gzip
import random
import sys
import zlib
from typing import Any

import pytest
from starlette.types import Message

from gateway.body import BodyLimits, head, read_body
from gateway.errors import Refusal
from gateway.leash import CallerLeft
from gateway.room import Room

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMITS = BodyLimits(max_bytes=1000, deadline_s=5.0, room=Room(1_000_000_000))


async def read(
    *chunks: bytes, coding: bytes = b"", limits: BodyLimits = LIMITS, leaves: bool = False
) -> bytes:
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": leaves or i < len(chunks) - 1}
        for i, chunk in enumerate(chunks)
    ]
    if leaves:
        messages.append({"type": "http.disconnect"})

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    with limits.room.share() as share:
        return await read_body(head({b"content-encoding": coding}), receive, limits, share)


async def status(*chunks: bytes, coding: bytes = b"", limits: BodyLimits = LIMITS) -> int:
    with pytest.raises(Refusal) as refused:
        await read(*chunks, coding=coding, limits=limits)
    return refused.value.problem.status


async def test_chunks_are_joined() -> None:
    assert await read(b"one ", b"two ", b"three") == b"one two three"


@pytest.mark.parametrize("coding", [b"", b"identity", b"Identity"])
async def test_a_body_without_a_coding_is_itself(coding: bytes) -> None:
    assert await read(b"plain", coding=coding) == b"plain"


@pytest.mark.parametrize("coding", [b"zstd", b"gzip", b"x-gzip", b" ZSTD "])
async def test_coded_bodies_are_decoded(coding: bytes) -> None:
    compress = zstd.compress if b"zstd" in coding.lower() else gzip.compress

    assert await read(compress(b"text" * 100), coding=coding) == b"text" * 100


async def test_several_members_are_one_body() -> None:
    assert await read(gzip.compress(b"a") + gzip.compress(b"b"), coding=b"gzip") == b"ab"
    assert await read(zstd.compress(b"a") + zstd.compress(b"b"), coding=b"zstd") == b"ab"


async def test_a_body_of_exactly_the_cap_is_fine_and_one_byte_more_is_not() -> None:
    assert len(await read(b"x" * 1000)) == 1000
    assert await status(b"x" * 1001) == 413
    assert len(await read(zstd.compress(b"x" * 1000), coding=b"zstd")) == 1000
    assert await status(zstd.compress(b"x" * 1001), coding=b"zstd") == 413
    assert await status(gzip.compress(b"x" * 1001), coding=b"gzip") == 413


async def test_a_long_body_is_drained_before_it_is_refused() -> None:
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 500, "more_body": taken < 6}

    with pytest.raises(Refusal) as refused:
        await read_body(head({}), receive, LIMITS, LIMITS.room.share())

    assert taken == 6
    assert "connection" not in refused.value.problem.headers


async def test_an_endless_body_is_cut_off() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 500, "more_body": True}

    with pytest.raises(Refusal) as refused:
        await read_body(head({}), receive, LIMITS, LIMITS.room.share())

    assert refused.value.problem.status == 413
    assert refused.value.problem.headers["connection"] == "close"


@pytest.mark.parametrize("bomb", [zstd.compress, gzip.compress, zlib.compress])
async def test_a_bomb_is_refused_without_being_unpacked(bomb: object) -> None:
    sent = bomb(b"\0" * 100_000_000)  # type: ignore[operator]
    coding = b"gzip" if bomb is gzip.compress else b"zstd"
    limits = BodyLimits(max_bytes=1_000_000, deadline_s=5.0, room=Room(1_000_000_000))

    assert await status(sent, coding=coding, limits=limits) == (
        400 if bomb is zlib.compress else 413
    )


@pytest.mark.parametrize("coding", [b"zstd", b"gzip"])
async def test_damaged_and_truncated_bodies_are_400(coding: bytes) -> None:
    whole = (zstd.compress if coding == b"zstd" else gzip.compress)(bytes(range(256)) * 3)

    assert await status(whole[: len(whole) // 2], coding=coding) == 400
    assert await status(b"not compressed at all", coding=coding) == 400
    assert await status(b"", coding=coding) == 400
    assert await status(whole + b"trailing", coding=coding) == 400


@pytest.mark.parametrize("coding", [b"zstd", b"gzip"])
async def test_members_are_counted(coding: bytes) -> None:
    empty = (zstd.compress if coding == b"zstd" else gzip.compress)(b"")
    last = (zstd.compress if coding == b"zstd" else gzip.compress)(b"end")

    limits = BodyLimits(max_bytes=10_000, deadline_s=5.0, room=Room(1_000_000_000))

    assert await read(empty * 63 + last, coding=coding, limits=limits) == b"end"
    assert await status(empty * 64 + last, coding=coding, limits=limits) == 400


@pytest.mark.parametrize("coding", [b"zstd", b"gzip"])
async def test_a_long_body_that_hardly_compresses_is_decoded_whole(coding: bytes) -> None:
    text = random.Random(1).randbytes(1_000_000)
    sent = (zstd.compress if coding == b"zstd" else gzip.compress)(text)
    limits = BodyLimits(max_bytes=2_000_000, deadline_s=5.0, room=Room(1_000_000_000))

    assert await read(sent, coding=coding, limits=limits) == text
    assert await status(sent[:-5], coding=coding, limits=limits) == 400


async def test_a_window_larger_than_8_mib_is_400() -> None:
    big: dict[Any, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=big)
    sent = compressor.compress(b"x" * 100) + compressor.flush()

    assert await status(sent, coding=b"zstd") == 400


@pytest.mark.parametrize("coding", [b"br", b"snappy", b"deflate", b"gzip, zstd"])
def test_other_codings_are_415_and_told_what_would_do(coding: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        head({b"content-encoding": coding})

    assert refused.value.problem.status == 415
    assert "zstd" in refused.value.problem.headers["accept-encoding"]


async def test_a_body_that_does_not_arrive_is_408() -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Refusal) as refused:
        await read_body(head({}), receive, BodyLimits(1000, 0.01, LIMITS.room), LIMITS.room.share())

    assert refused.value.problem.status == 408
    assert refused.value.problem.headers["connection"] == "close"


async def test_a_body_that_has_arrived_has_no_deadline() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"late"}

    with LIMITS.room.share() as share:
        limits = BodyLimits(1000, 0.0, LIMITS.room)
        assert await read_body(head({}), receive, limits, share, whole=True) == b"late"


async def test_a_caller_who_hangs_up_midway_is_noticed() -> None:
    with pytest.raises(CallerLeft):
        await read(b"half", leaves=True)
