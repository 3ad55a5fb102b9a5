"""Requests in flight that others may join: retries of the same bytes, the same Idempotency-Key.

Confined to the event loop.
"""

import asyncio
import hashlib
from collections.abc import Awaitable
from typing import TypeAlias

from engines.contract import EngineError
from gateway.decision import Decision
from gateway.errors import Refusal, refusal

_Outcome: TypeAlias = Decision | Refusal | EngineError | None

_Once: TypeAlias = tuple[str, bytes, None]
"""A key's id and an Idempotency-Key; longer, so that it is never a body."""
_Key: TypeAlias = tuple[str, bytes] | _Once
"""A key's id and a body, or an Idempotency-Key."""


class Flights:
    """Everything in flight.

    Most requests are never joined, so a flight is no more than its keys until somebody waits.
    """

    def __init__(self) -> None:
        self._waiting: dict[_Key, list[asyncio.Future[_Outcome]] | None] = {}
        """Key → who waits for the request, `None` = nobody yet."""
        self._bodies: dict[_Once, bytes] = {}
        """Idempotency-Key → the body that it is in flight with."""

    def begin(self, key_id: str, body: bytes, header: bytes | None) -> tuple[_Key, ...]:
        """Let others join this request by its body, and by its Idempotency-Key if it has one.

        What to `end` it with.
        """
        waiting = self._waiting
        key: _Key = key_id, body
        own: tuple[_Key, ...] = ()
        if key not in waiting:
            waiting[key] = None
            own = (key,)
        if header is not None:
            once = key_id, header, None
            if once not in waiting:
                waiting[once] = None
                self._bodies[once] = body
                own = (*own, once)
        return own

    def found(
        self, key_id: str, body: bytes, header: bytes | None, *, retried: bool
    ) -> Awaitable[_Outcome] | None:
        """The outcome of the request in flight that is the same; `None` = there is none.

        Of two bodies with the same Idempotency-Key the store knows which one came first.
        """
        key: _Key = key_id, body
        if header is not None:
            key = once = key_id, header, None
            if self._bodies.get(once) != body:
                return None
        elif not retried:
            return None
        if key not in self._waiting:
            return None
        waiting = self._waiting[key]
        if waiting is None:
            waiting = self._waiting[key] = []
        future: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        return future

    def end(self, own: tuple[_Key, ...], outcome: _Outcome) -> None:
        """Tell everybody who waits."""
        for key in own:
            waiting = self._waiting.pop(key)
            if len(key) == 3:
                del self._bodies[key]
            for future in waiting or ():
                if not future.done():
                    future.set_result(outcome)


def conflict() -> Refusal:
    """The refusal of an Idempotency-Key that was used for something else."""
    return refusal(
        "idempotency_conflict", "This Idempotency-Key was used with another request body."
    )


def digest(content: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(content).digest()
