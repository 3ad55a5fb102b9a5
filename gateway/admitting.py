"""Asking the store for room; and where another process answers the same request, waiting for it."""

import asyncio

from gateway.ledger.budget import Admission, Held, admit
from gateway.ledger.store import Replay
from gateway.ledger.writer import Writer
from policies.limits import Exhausted

_PATIENCE_S = 2.0
"""After that the caller is told to come back: whoever began may be slow, or have been killed."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.16


async def admitted(writer: Writer, asked: Admission) -> Held | Exhausted | Replay:
    """What the store says; a replay without an answer only after two seconds of waiting for it.

    Raises:
        StoreError: the store cannot be asked.
    """
    clock = asyncio.get_running_loop()
    until_s, pause_s = clock.time() + _PATIENCE_S, _FIRST_PAUSE_S
    while True:
        found = await writer.submit(lambda store: admit(store, asked))
        if not _elsewhere(found, asked) or clock.time() >= until_s:
            return found
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _elsewhere(found: Held | Exhausted | Replay, asked: Admission) -> bool:
    """Whether another process is about to answer this very request."""
    if not isinstance(found, Replay) or asked.idempotency is None:
        return False
    return found.answer is None and found.body == asked.idempotency.body
