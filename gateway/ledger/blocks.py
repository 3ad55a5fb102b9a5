"""Room in a budget that is held for more than one request, so that most need not ask the store.

A block is a lease of the store; requests take their upper bounds from it and give back what they
did not use. What a block holds and what was settled from it never exceed what was leased. Confined
to the event loop.
"""

from dataclasses import dataclass

from gateway.ledger.budget import Admission, Held
from gateway.ledger.store import Store
from gateway.ledger.writer import Work, Writer
from policies.limits import NOTHING, Amounts, Limits

_IDLE_S = 1.0


@dataclass(slots=True)
class Block:
    """A lease and what is left of it."""

    asked: Admission
    limits: Limits | None
    """Of the key when it was claimed: others must have the same."""
    held: Amounts
    """What was leased."""
    tokens: int
    """Free; may fall below 0 when work takes more than its bound."""
    nanos: int
    from_s: float
    until_s: float
    """The last moment to take from it, so that whoever takes is back before the lease ends, and
    before the day does that it was claimed for."""
    used_s: float
    """When somebody last took from it."""
    flying: int = 1
    """Requests that took from it and have not come back."""
    settled_tokens: int = 0
    settled_nanos: int = 0
    retired: bool = False

    def in_flight(self) -> Amounts:
        """What is taken and has not come back."""
        tokens = self.held.tokens - self.tokens - self.settled_tokens
        return Amounts(tokens, 0, self.held.nanos - self.nanos - self.settled_nanos)


class Blocks:
    """At most one block of each key that may be taken from."""

    def __init__(self, writer: Writer, longest_s: float) -> None:
        """A request takes at most `longest_s` from its admission to its settling."""
        self._writer = writer
        self._longest_s = longest_s
        self._blocks: dict[str, Block] = {}

    def add(self, asked: Admission, held: Held) -> Block:
        """The block of a lease that the store has granted; `asked` has taken its part already."""
        claim, held_s = asked.claim, asked.lease_s - 2 * self._longest_s
        own = NOTHING if claim is None else claim.amounts
        until_s = asked.now_s + held_s
        block = Block(
            asked,
            None if claim is None else claim.limits,
            held.amounts,
            tokens=held.amounts.tokens - own.tokens,
            nanos=held.amounts.nanos - own.nanos,
            from_s=asked.now_s,
            until_s=until_s if claim is None else min(until_s, claim.windows.day_end_s),
            used_s=asked.now_s,
        )
        if held.amounts == own:
            block.retired = True
        else:
            self.retire(asked.key_id)
            self._blocks[asked.key_id] = block
        return block

    def take(self, key_id: str, limits: Limits, wanted: Amounts, now_s: float) -> Block | None:
        """The block that holds room for what is wanted; `None` = the store has to be asked.

        Escalations are asked about each time. Money that is not limited is not held: what it cost
        leaves less than nothing of it free.
        """
        block = self._blocks.get(key_id)
        if block is None:
            return None
        if block.limits is not limits or not block.from_s <= now_s < block.until_s:
            self.retire(key_id)
            return None
        tokens, _, nanos = wanted
        if tokens > block.tokens or (nanos and nanos > block.nanos):
            return None
        block.tokens -= tokens
        block.nanos -= nanos
        block.flying += 1
        block.used_s = now_s
        return block

    def back(
        self, block: Block, taken: Amounts, tokens: int, nanos: int, requests: int = 1
    ) -> Amounts | None:
        """Requests used this much; what the lease is to hold from their charges on.

        `NOTHING` = it ends; `None` = it stays as it is.
        """
        taken_tokens, _, taken_nanos = taken
        block.tokens += taken_tokens - tokens
        block.settled_tokens += tokens
        block.nanos += taken_nanos - nanos
        block.settled_nanos += nanos
        block.flying -= requests
        if not block.retired:
            return None
        return block.in_flight() if block.flying else NOTHING

    def retire(self, key_id: str) -> Block | None:
        """Take no more from the key's block and give up what is free; which it was."""
        block = self._blocks.pop(key_id, None)
        if block is not None:
            self._retire(block)
        return block

    def retire_idle(self, now_s: float) -> None:
        """Give up what nobody has taken from for a second: another process may want it."""
        for key_id, block in list(self._blocks.items()):
            if not block.used_s <= now_s < block.used_s + _IDLE_S:
                self.retire(key_id)

    def close(self) -> None:
        """Give up what is free of all of them, with what is written last; needs no event loop."""
        while self._blocks:
            _, block = self._blocks.popitem()
            self._writer.put(self._retired(block), None)

    def _retire(self, block: Block) -> None:
        self._writer.post(self._retired(block))

    def _retired(self, block: Block) -> Work:
        """The work that leaves the lease no more than what is in flight."""
        block.retired = True
        lease_id, flying = block.asked.lease_id, block.flying
        left = block.in_flight()

        def shrink(store: Store) -> None:
            if flying:
                store.shrink(lease_id, left)
            else:
                store.release(lease_id)

        return shrink
