"""What a request held is freed when it ends, however it ends.

An exception knows the frames it passed through. Where one of these knows the exception, request,
inquiry and connection stay until the garbage collector finds them: hours, in a process that was
told to look seldom.
"""

import asyncio
import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from gateway import issuing
from gateway.config import Settings
from gateway.ledger.sqlite import SqliteStore

from .asks import NOUL, ask, raw
from .conftest import need
from .serving import Address, inside
from .sockets import exchange, line, posted

_OURS = ("gateway", "engines", "policies")
_ROOT = Path(__file__).parents[2]
_FAULTS = {"fails": "raise", "nan": "nan", "busy": "busy", "slow": "stall"}
_SETTINGS: dict[str, Any] = {
    "default_model": "sound",
    "server": {"port": 0, "drain_s": 1.0, "deadline_s": 0.5, "body_deadline_s": 0.2},
    "limits": {"max_body_bytes": 100_000},
    "cascade": {"default_floor": 0.999, "on_unavailable": "small"},
    "engines": {
        "sound": {"kind": "scripted", "max_tokens": 1_000, "max_waiting": 64},
        "small": {"kind": "starter"},
        **{
            name: {"kind": "scripted", "faults": {fault: 1}, "max_waiting": 64, "workers": 4}
            for name, fault in _FAULTS.items()
        },
    },
    "models": {
        "sound": {"engine": "sound", "aliases": ["jev-latest"]},
        **{name: {"engine": name} for name in _FAULTS},
        "above": {"tiers": ["sound", "fails"]},
        "below": {"tiers": ["fails", "sound"]},
        "both": {"tiers": ["fails", "busy"]},
        "late": {"tiers": ["sound", "slow"]},
        "small": {"engine": "small"},
        "ladder": {"tiers": ["small", "sound"]},
    },
}


class _House(NamedTuple):
    address: Address
    loop: asyncio.AbstractEventLoop
    bearer: str
    poor: str
    """As the other one, but with a budget for next to nothing."""

    def post(self, body: bytes, *headers: str, bearer: str = "") -> int:
        """The status."""
        about = "Content-Type: application/json", bearer or self.bearer, *headers
        return exchange(self.address, posted(body, *about)).status

    def of(self, model: str, **fields: Any) -> int:
        """The status of a small request for the model."""
        return self.post(raw(ask(model=model, **fields)))

    async def quiet(self) -> None:
        """Nothing, once no request is under way."""
        own = asyncio.current_task()
        while any(
            "RequestResponseCycle" in str(one.get_coro()) for one in asyncio.all_tasks() - {own}
        ):
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_House]:
    need("starter")
    path = str(tmp_path_factory.mktemp("garbage") / "ledger.db")
    bearers = []
    with closing(SqliteStore(path)) as store:
        for name, tokens in (("team", 1_000_000_000), ("poor", 1)):
            wish = {"name": name, "tokens_per_day": tokens}
            made = issuing.create(store, wish, [], time.time()).minted.text
            bearers.append(f"Authorization: Bearer {made}")
    settings = Settings.model_validate({**_SETTINGS, "ledger": {"path": path}})
    with inside(settings) as (address, loop):
        yield _House(address, loop, *bearers)


@contextmanager
def _nothing_left(house: _House) -> Iterator[None]:
    """Fails where the block leaves objects of ours that only the collector finds."""
    gc.collect()
    gc.disable()
    try:
        yield
        asyncio.run_coroutine_threadsafe(house.quiet(), house.loop).result(10)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        found = Counter(filter(None, map(_ours, gc.garbage)))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert found == {}


def _ours(item: object) -> str | None:
    """What it is, if it belongs to the gateway."""
    if isinstance(item, FrameType):
        path = Path(item.f_code.co_filename)
        inside_us = path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in _OURS
        return f"frame of {path.stem}.{item.f_code.co_name}" if inside_us else None
    kind = type(item)
    return kind.__qualname__ if kind.__module__.split(".")[0] in _OURS else None


def _late_body(house: _House) -> int:
    with line(house.address) as slow:
        slow.send(posted(b"", house.bearer).replace(b"Content-Length: 0", b"Content-Length: 9"))
        return slow.reply().status


def _same_at_once(house: _House) -> int:
    body, again = raw(ask(model="slow", state=str(time.time()))), "X-TypeSafe-Retry-Count: 1"
    with ThreadPoolExecutor(4) as callers:
        statuses = set(callers.map(lambda _: house.post(body, again), range(4)))
    (status,) = statuses
    return status


def _untold(house: _House) -> int:
    """An outcome that is about nothing: the ledger's thread finds that out."""
    about = {"outcomes": [{"request_id": "nobody", "question": "n", "truth": True}]}
    head = "Content-Type: application/json", house.bearer
    sent = posted(json.dumps(about).encode(), *head, path="/v1/outcomes")
    return exchange(house.address, sent).status


def _conflict(house: _House) -> int:
    once = f"Idempotency-Key: {time.time()}"
    assert house.post(raw(), once) == 200
    return house.post(raw(ask(state="another")), once)


_WORDS = "word " * 2_000


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (lambda house: house.of("sound"), 200),
        (lambda house: house.of("sound", state=_WORDS), 400),
        (lambda house: house.of("fails"), 500),
        (lambda house: house.of("nan"), 500),
        (lambda house: house.of("busy"), 529),
        (lambda house: house.of("slow"), 504),
        (lambda house: house.of("above"), 200),
        (lambda house: house.of("below"), 200),
        (lambda house: house.of("below", state=_WORDS), 400),
        (lambda house: house.of("both"), 529),
        (lambda house: house.of("late"), 200),
        (lambda house: house.of("small", state=_WORDS), 400),
        (lambda house: house.of("ladder", state=_WORDS[:4_000]), 200),
        (lambda house: house.of("nobody"), 400),
        (lambda house: house.post(b"{"), 422),
        (lambda house: house.post(raw(ask({"n": {**NOUL, "type": "noun"}}))), 422),
        (lambda house: house.post(b'"' + b"x" * 150_000), 413),
        (lambda house: house.post(b'"' + b"x" * 900_000), 413),
        (lambda house: house.post(raw(), bearer="Authorization: Bearer tg_none"), 401),
        (lambda house: house.post(raw(), bearer=house.poor), 429),
        (_late_body, 408),
        (_same_at_once, 504),
        (_conflict, 409),
        (_untold, 422),
    ],
    ids=[
        "answered",
        "too long",
        "fails",
        "not finite",
        "busy",
        "late",
        "nothing above",
        "nothing below",
        "too long for all",
        "nothing at all",
        "too late above",
        "too long for a real one",
        "too long for the small one",
        "unknown model",
        "no JSON",
        "no question",
        "too large",
        "far too large",
        "no key",
        "no budget",
        "slow body",
        "the same at once",
        "another body",
        "an outcome of nothing",
    ],
)
def test_what_a_request_held_is_freed_at_its_end(
    house: _House, asked: Callable[[_House], int], status: int
) -> None:
    with _nothing_left(house):
        statuses = [asked(house) for _ in range(3)]
    assert statuses == [status] * 3


def test_what_a_caller_who_left_held_is_freed(house: _House) -> None:
    with _nothing_left(house):
        for _ in range(3):
            with line(house.address) as leaver:
                leaver.send(posted(raw(ask(model="slow")), house.bearer))
                time.sleep(0.1)
