"""Old charges become daily sums, a few at a time, so that nobody waits for the pruning.

Each step adds charges to the roll-ups and deletes them in one transaction: whatever is summed over
both, before, between or after steps, is the same.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from gateway.ledger.store import Store, StoreError

_LOG = logging.getLogger("tiergate")

T = TypeVar("T")

STEP_ROWS = 200
"""Charges in one step: some ten milliseconds of writing."""

_HOUR_S = 3600.0
_BREATH_S = 0.05

_OLD = "(SELECT charge_id FROM charges WHERE at_s < ? ORDER BY at_s, charge_id LIMIT ?)"


def _roll_up(table: str, facts: str, dimensions: Sequence[str], sums: Sequence[str]) -> str:
    """The statement that adds the oldest charges to a roll-up; parameters as in `_OLD`."""
    by = ", ".join(dimensions)
    added = ", ".join(f"SUM({name})" for name in sums)
    merged = ", ".join(f"{name} = {name} + excluded.{name}" for name in sums)
    return (
        f"INSERT INTO {table} ({by}, {', '.join(sums)})"  # noqa: S608 - names from below
        f" SELECT {by}, {added} FROM {facts} WHERE charge_id IN {_OLD} GROUP BY {by}"
        f" ON CONFLICT ({by}) DO UPDATE SET {merged}"
    )


_COUNTED = ("requests", "tokens", "busy_us")
_ASKED = ("nouls", "choices", "scores", "escalated")
_PAID = ("nanos", "unpriced")

_STATEMENTS = (
    _roll_up(
        "usage_daily",
        "charge_facts",
        ("day", "key_id", "model", "cached", "status"),
        (*_COUNTED, *_ASKED, *_PAID),
    ),
    _roll_up(
        "steps_daily", "step_facts", ("day", "key_id", "model", "engine"), (*_COUNTED, *_PAID)
    ),
    _roll_up("reasons_daily", "reason_facts", ("day", "key_id", "model", "reason"), ("questions",)),
    f"DELETE FROM charges WHERE charge_id IN {_OLD}",  # noqa: S608 - a constant
)


def prune_step(connection: sqlite3.Connection, before_s: float, at_most: int) -> int:
    """Roll up and delete the oldest charges made before `before_s` (unix seconds).

    Returns how many there were, 0 to `at_most`. The caller opens the transaction; without one it
    is a transaction of its own.
    """
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _STATEMENTS:
            deleted = connection.execute(statement, (before_s, at_most)).rowcount
        if own:
            connection.execute("COMMIT")
    except BaseException:
        if own:
            connection.execute("ROLLBACK")
        raise
    return deleted


class Submits(Protocol):
    """Whoever runs work on the thread that writes; see `gateway.ledger.writer.Writer`."""

    async def submit(self, work: Callable[[Store], T]) -> T:
        """What `work` returns, after its commit."""
        ...


async def keep_pruned(
    writer: Submits, retention_s: float, *, every_s: float = _HOUR_S, breath_s: float = _BREATH_S
) -> None:
    """Prune charges older than `retention_s`, now and every hour, until cancelled.

    Other writers go between the steps. A store that cannot be written is left for the next hour.
    """

    def step(store: Store, before_s: float) -> int:
        return store.prune(before_s, STEP_ROWS)

    await _kept(writer, retention_s, _Chore(step, every_s, breath_s))


async def keep_forgetting(
    writer: Submits, retention_s: float, *, every_s: float = _HOUR_S, breath_s: float = _BREATH_S
) -> None:
    """Delete decisions older than `retention_s`, in the same way."""

    def step(store: Store, before_s: float) -> int:
        return store.forget_decisions(before_s, STEP_ROWS)

    await _kept(writer, retention_s, _Chore(step, every_s, breath_s))


@dataclass(frozen=True, slots=True)
class _Chore:
    """A little work that is repeated while there is as much of it as fits."""

    step: Callable[[Store, float], int]
    every_s: float
    breath_s: float


async def _kept(writer: Submits, retention_s: float, chore: _Chore) -> None:
    while True:
        before_s = time.time() - retention_s
        try:
            while await writer.submit(lambda store: chore.step(store, before_s)) == STEP_ROWS:  # noqa: B023
                await asyncio.sleep(chore.breath_s)
        except StoreError:
            _LOG.warning("what is old in the ledger could not be tidied; trying again in an hour")
        await asyncio.sleep(chore.every_s)
