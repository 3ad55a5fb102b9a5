"""Requests in flight that others may join: retries of the same bytes, the same Idempotency-Key.

Confined to the event loop.
"""

import asyncio
import hashlib
from typing import TypeAlias

from engines.contract import EngineError
from gateway.decision import Decision
from gateway.errors import Refusal, refusal

_Outcome: TypeAlias = Decision | Refusal | EngineError | None


class Flight:
    """One request being answered, and everybody who waits for its answer."""

    __slots__ = ("body", "keys", "waiting")

    def __init__(self, body: bytes, keys: tuple[tuple[str, bytes], ...]) -> None:
        self.body = body
        self.keys = keys
        self.waiting: list[asyncio.Future[_Outcome]] = []

    async def outcome(self) -> Decision | None:
        """The decision; `None` = whoever flew it left, so somebody else must.

        Raises:
            Refusal, EngineError: what the request was refused with.
        """
        future: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        found = await future
        if isinstance(found, Exception):
            raise found
        return found


class Flights:
    """Everything in flight."""

    def __init__(self) -> None:
        self._flights: dict[tuple[str, bytes], Flight] = {}

    def begin(self, key_id: str, body: bytes, header: bytes | None) -> Flight:
        """Let others join this request by its body, and by its Idempotency-Key if it has one."""
        keys: tuple[tuple[str, bytes], ...] = ((key_id, body),)
        if header is not None:
            keys = (*keys, (f"{key_id} once", header))
        flight = Flight(body, keys)
        for key in keys:
            self._flights.setdefault(key, flight)
        return flight

    def found(
        self, key_id: str, body: bytes, header: bytes | None, *, retried: bool
    ) -> Flight | None:
        """The flight that answers this request too.

        Of two bodies with the same Idempotency-Key the store knows which one came first.
        """
        if header is not None:
            flight = self._flights.get((f"{key_id} once", header))
            return flight if flight is not None and flight.body == body else None
        return self._flights.get((key_id, body)) if retried else None

    def end(self, flight: Flight, outcome: _Outcome) -> None:
        """Tell everybody who waits."""
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]
        for future in flight.waiting:
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
