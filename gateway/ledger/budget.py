"""What happens to the store around a piece of work: admit it, then settle it.

Each is called inside a transaction of whatever store there is.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.ledger.calendar import Windows
from gateway.ledger.owed import Owed
from gateway.ledger.rows import refused
from gateway.ledger.store import KeptText, Replay, Row, Store
from policies.limits import NOTHING, Amounts, Exhausted, Limits, exhausted, spare

REMEMBERED_S = 86_400.0
"""How long an answer to an Idempotency-Key is kept."""


class Claim(NamedTuple):
    """An upper bound that somebody wants to hold."""

    limits: Limits
    amounts: Amounts
    windows: Windows


@dataclass(frozen=True, slots=True)
class Held:
    """A claim was granted."""

    amounts: Amounts
    """At least what was claimed; more where the budget is far from its end."""


@dataclass(frozen=True, slots=True)
class Idempotency:
    """What makes a request the same as an earlier one."""

    header: bytes
    """SHA-256 of the Idempotency-Key."""
    body: bytes
    """SHA-256 of the decoded body."""


class Admission(NamedTuple):
    """A piece of work at the store's door."""

    lease_id: int
    """Random; names the work's lease and owns its replay."""
    key_id: str
    now_s: float
    lease_s: float
    """How long what is held stays held if nobody settles it."""
    claim: Claim | None = None
    """`None` = there is no budget to hold."""
    idempotency: Idempotency | None = None


def admit(store: Store, asked: Admission) -> Held | Exhausted | Replay:
    """What is held now, or the budget without room, or the earlier request.

    What ends up to twice a lease ahead counts: beyond that, the clock has gone back since.
    """
    once, claim = asked.idempotency, asked.claim
    granted, until_s = NOTHING, asked.now_s + 2 * asked.lease_s
    if once is not None:
        earlier = store.replay(asked.key_id, once.header, asked.now_s, until_s)
        if earlier is not None:
            return earlier
    if claim is not None:
        day, month = store.spent(asked.key_id, claim.windows)
        held = store.leased(asked.key_id, asked.now_s, until_s)
        found = exhausted(claim.limits, day, month, held, claim.amounts)
        if found is not None:
            return found
        alone = once is not None or claim.amounts.escalations > 0
        more = 0 if alone else spare(claim.limits, day, month, held, claim.amounts)
        granted = claim.amounts.times(1 + more)
        store.lease(asked.lease_id, asked.key_id, granted, asked.now_s + asked.lease_s)
    if once is not None:
        expires_s = asked.now_s + asked.lease_s
        store.begin_replay(asked.key_id, once.header, once.body, asked.lease_id, expires_s)
    return Held(granted)


class Settlement(NamedTuple):
    """What remains of a piece of work."""

    asked: Admission | None
    """`None` = the store was not asked for it."""
    row: Row | None = None
    """Its charge; `None` = it cost nothing."""
    day_s: int = 0
    """When the day began that the charge belongs to."""
    answer: bytes | None = None
    """What is kept for its Idempotency-Key; `None` = the key may be used again."""
    lease_id: int | None = None
    """The lease that changes with it."""
    left: Amounts = NOTHING
    """What that lease holds from now on; nothing = it ends."""
    text: KeptText | None = None
    """`None` = no text is kept."""


def settle(store: Store, done: Settlement) -> None:
    """Put the charge in the place of what was held."""
    if done.lease_id is not None:
        if done.left == NOTHING:
            store.release(done.lease_id)
        else:
            store.shrink(done.lease_id, done.left)
    asked = done.asked
    if asked is not None and (once := asked.idempotency) is not None:
        store.finish_replay(
            asked.key_id,
            once.header,
            asked.lease_id,
            done.answer,
            asked.now_s + REMEMBERED_S,
        )
    if done.row is not None and done.text is not None:
        store.charge_kept(done.row, done.day_s, done.text)
    elif done.row is not None:
        store.charge_rows([done.row], done.day_s)


class Settling(Owed):
    """Work for a writer: `settle`."""

    def __init__(self, done: Settlement) -> None:
        self._done = done

    def __call__(self, store: Store) -> None:
        """Settle it."""
        settle(store, self._done)

    def refused(self) -> "Settling":
        """Without the answer; what was read for it costs the same."""
        row, text = self._done.row, self._done.text
        if row is not None:
            row = refused(row)
        if text is not None:
            text = text._replace(answered=None)
        return Settling(self._done._replace(row=row, answer=None, text=text))
