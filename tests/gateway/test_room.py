"""The memory that all request bodies share: never exceeded, given back, kept for the small."""

import asyncio
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from gateway.body import BodyLimits, head, read_body
from gateway.config_limits import LimitsSection
from gateway.errors import Refusal
from gateway.exposition_state import states
from gateway.leash import CallerLeft
from gateway.multipart import opened
from gateway.room import SMALL_BYTES, Room
from gateway.wiring import new_services
from tests.gateway.conftest import Gateway, body_of, settings_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PATH = "/v1/systemone"
ROOM_BYTES = 1_000_000


def of_length(size_bytes: int) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"gateway"), (b"content-length", str(size_bytes).encode())]


def refused_bytes(room: Room, size_bytes: int, declared: int = 0) -> bool:
    try:
        with room.share(of_length(declared)) as share:
            share.grow(size_bytes)
    except Refusal as refused:
        return refused.problem.status == 529 and refused.problem.retry_after_s is not None
    return False


def test_large_bodies_leave_a_quarter_to_small_ones() -> None:
    room = Room(ROOM_BYTES)
    with room.share() as large:
        large.grow(ROOM_BYTES * 3 // 4)

        assert refused_bytes(room, SMALL_BYTES + 1)
        assert not refused_bytes(room, SMALL_BYTES)

    assert room.taken_bytes == 0


def test_a_body_that_says_it_will_be_large_takes_nothing_from_the_small_ones() -> None:
    room = Room(ROOM_BYTES)
    with room.share() as large:
        large.grow(ROOM_BYTES * 3 // 4)

        assert refused_bytes(room, 1, declared=SMALL_BYTES + 1)
        assert not refused_bytes(room, 1, declared=SMALL_BYTES)


def test_small_bodies_never_take_more_than_there_is() -> None:
    room = Room(ROOM_BYTES)
    with ExitStack() as stack:
        while not refused_bytes(room, SMALL_BYTES):
            stack.enter_context(room.share()).grow(SMALL_BYTES)

        assert ROOM_BYTES - SMALL_BYTES < room.taken_bytes <= ROOM_BYTES
    assert room.taken_bytes == 0


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-200_000, 500_000) | st.none()), max_size=30
)


@given(steps=STEPS, declared=st.lists(st.integers(0, 200_000), min_size=4, max_size=4))
def test_whatever_shares_do_the_room_is_their_sum_and_ends_empty(
    steps: list[tuple[int, int | None]], declared: list[int]
) -> None:
    room = Room(ROOM_BYTES)
    shares = [room.share(of_length(size)) for size in declared]
    held = [0] * len(shares)
    for which, change in steps:
        if change is None:
            shares[which].empty()
            held[which] = 0
        elif change < 0:
            shares[which].shrink(-change)
            held[which] = max(0, held[which] + change)
        else:
            try:
                shares[which].grow(change)
            except Refusal:
                continue
            held[which] += change
        assert room.taken_bytes == sum(held) <= ROOM_BYTES
    for share in shares:
        share.__exit__(None, None, None)

    assert room.taken_bytes == 0


def test_a_thread_that_still_decodes_for_a_request_that_has_ended_takes_nothing() -> None:
    room = Room(ROOM_BYTES)
    with room.share() as share:
        share.grow(10)
    with ThreadPoolExecutor(1) as decoding:
        late = decoding.submit(share.grow, 10)

    assert isinstance(late.exception(), Refusal)
    assert room.taken_bytes == 0


async def read(room: Room, *chunks: bytes, coding: bytes = b"", leaves: bool = False) -> int:
    """Bytes of the room that are taken when the body has been read, before it is let go."""
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": leaves or i < len(chunks) - 1}
        for i, chunk in enumerate(chunks)
    ]
    messages.append({"type": "http.disconnect"})

    async def receive() -> Message:
        return messages.pop(0)

    limits = BodyLimits(max_bytes=500_000, deadline_s=5.0, room=room)
    with room.share() as share:
        await read_body(head({b"content-encoding": coding}), receive, limits, share)
        return room.taken_bytes


async def test_what_has_arrived_is_counted_until_the_request_has_ended() -> None:
    room = Room(ROOM_BYTES)

    assert await read(room, b"x" * 1000, b"y" * 500) == 1500
    assert room.taken_bytes == 0


async def test_what_a_body_was_decoded_to_is_counted_instead_of_what_was_sent() -> None:
    room = Room(ROOM_BYTES)
    text = random.Random(1).randbytes(300_000)

    assert await read(room, zstd.compress(text), coding=b"zstd") == 300_000
    assert room.taken_bytes == 0


async def test_a_body_for_which_there_is_no_room_is_drained_and_refused() -> None:
    room = Room(ROOM_BYTES)
    with room.share() as others:
        others.grow(ROOM_BYTES * 3 // 4 - 150_000)
        with pytest.raises(Refusal) as refused:
            await read(room, *[b"x" * 100_000] * 4)
        left = room.taken_bytes

    assert refused.value.problem.status == 529
    assert left == ROOM_BYTES * 3 // 4 - 150_000


async def test_a_bomb_is_refused_when_the_room_is_full_and_not_when_it_is_unpacked() -> None:
    room = Room(ROOM_BYTES)
    with room.share() as others:
        others.grow(ROOM_BYTES * 3 // 4 - 150_000)
        with pytest.raises(Refusal) as refused:
            await read(room, zstd.compress(b"\0" * 400_000), coding=b"zstd")

    assert refused.value.problem.status == 529
    assert room.taken_bytes == 0


@pytest.mark.parametrize("coding", [b"", b"zstd", b"gzip"])
async def test_nothing_stays_taken_by_a_body_that_fails(coding: bytes) -> None:
    room = Room(ROOM_BYTES)
    for chunks, leaves in [([b"x" * 300_000, b"y" * 300_000], False), ([b"half"], True)]:
        with pytest.raises((Refusal, CallerLeft)):
            await read(room, *chunks, coding=coding, leaves=leaves)

    assert room.taken_bytes == 0


async def test_the_copies_of_a_multipart_body_are_counted() -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n--b--\r\n'
    room = Room(ROOM_BYTES)
    with room.share() as share:
        share.grow(len(form))
        request, others = await opened(form, "b", share, max_assets=1)

        assert (request, others) == (b"{}", {})
        assert room.taken_bytes == 2 * len(form)


def tight(max_body_bytes: int = 100_000) -> Any:
    sizes = {"max_body_bytes": max_body_bytes, "max_bodies_bytes": 4 * max_body_bytes}
    return settings_of(limits=LimitsSection(**sizes))


async def test_large_uploads_that_never_end_keep_nobody_small_from_being_answered(
    gateway: Gateway,
) -> None:
    holding = asyncio.Event()
    started = [asyncio.Event() for _ in range(4)]

    async def slow(number: int) -> Any:
        yield b'{"state": "' + b"x" * 90_000
        started[number].set()
        await holding.wait()
        yield b'"}'

    with gateway(tight()) as client:
        uploads = [
            asyncio.create_task(client.post(PATH, content=slow(number))) for number in range(4)
        ]
        await asyncio.gather(*(one.wait() for one in started))
        small = [await client.post(PATH, content=body_of()) for _ in range(3)]
        holding.set()
        large = await asyncio.gather(*uploads)

    assert [one.status_code for one in small] == [200] * 3
    assert sorted(one.status_code for one in large) == [422, 422, 422, 529]
    full = next(one for one in large if one.status_code == 529)
    assert full.json()["detail"]["error_type"] == "overloaded_error"
    assert int(full.headers["retry-after-ms"]) >= 1


def bodies() -> Iterator[bytes]:
    yield body_of()
    yield body_of(state="x" * 90_000)
    yield b"{"
    yield b"x" * 300_000


async def test_after_any_traffic_the_room_is_empty(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[Room] = []

    class Known(Room):
        def __init__(self, max_bytes: int) -> None:
            super().__init__(max_bytes)
            rooms.append(self)

    monkeypatch.setattr("gateway.wiring_limits.Room", Known)
    with gateway(tight()) as client:
        answers: list[httpx.Response] = []
        for body in bodies():
            answers.append(await client.post(PATH, content=body))
            squeezed = zstd.compress(body)
            answers.append(
                await client.post(PATH, content=squeezed, headers={"content-encoding": "zstd"})
            )

    assert {one.status_code for one in answers} == {200, 413, 422}
    assert [room.taken_bytes for room in rooms] == [0]


def test_the_bodies_in_memory_are_told_beside_what_they_may_be() -> None:
    services = new_services(settings_of())
    with services.body.room.share() as share:
        share.grow(1000)
        found = {one.name: one.samples[0].value for one in states(services) if one.samples}

    assert found["tiergate_bodies_bytes"] == 1000
    assert found["tiergate_bodies_limit_bytes"] == 1_073_741_824
