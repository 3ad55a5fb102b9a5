"""Room in a budget that is held for more than one request, so that most need not ask the store.

A block is a lease of the store; requests take their upper bounds from it and give back what they
did not use. What a block holds and what was settled from it never exceed what was leased. Confined
to the event loop.
"""

from dataclasses import dataclass

from gateway.ledger.budget import Admission, Claim, Held
from gateway.ledger.store import Store
from gateway.ledger.writer import Writer
from policies.limits import NOTHING, Amounts

_IDLE_S = 1.0


@dataclass(slots=True)
class Block:
    """A lease and what is left of it."""

    asked: Admission
    claim: Claim | None
    """What was claimed first: others must have the same limits and windows."""
    tokens: int
    """Free; may fall below 0 when work takes more than its bound."""
    nanos: int
    flying: int
    """Requests that took from it and have not come back."""
    flying_tokens: int
    flying_nanos: int
    until_s: float
    """The last moment to take from it, so that whoever takes is back before the lease ends."""
    used_s: float
    """When somebody last took from it."""
    retired: bool = False

    def in_flight(self) -> Amounts:
        """What is taken and has not come back."""
        return Amounts(self.flying_tokens, 0, self.flying_nanos)


class Blocks:
    """At most one block of each key that may be taken from."""

    def __init__(self, writer: Writer, longest_s: float) -> None:
        """A request takes at most `longest_s` from its admission to its settling."""
        self._writer = writer
        self._longest_s = longest_s
        self._blocks: dict[str, Block] = {}

    def add(self, asked: Admission, held: Held) -> Block:
        """The block of a lease that the store has granted; `asked` has taken its part already."""
        own = NOTHING if asked.claim is None else asked.claim.amounts
        block = Block(
            asked,
            asked.claim,
            tokens=held.amounts.tokens - own.tokens,
            nanos=held.amounts.nanos - own.nanos,
            flying=1,
            flying_tokens=own.tokens,
            flying_nanos=own.nanos,
            until_s=asked.now_s + asked.lease_s - 2 * self._longest_s,
            used_s=asked.now_s,
        )
        if held.amounts == own:
            block.retired = True
        else:
            self.retire(asked.key_id)
            self._blocks[asked.key_id] = block
        return block

    def take(self, key_id: str, claim: Claim, now_s: float) -> Block | None:
        """The block that holds room for the claim; `None` = the store has to be asked."""
        block = self._blocks.get(key_id)
        if block is None or (born := block.claim) is None:
            return None
        limits, (tokens, escalations, nanos), windows = claim
        if not (
            born.limits is limits
            and born.windows is windows
            and block.asked.now_s <= now_s < block.until_s
        ):
            self.retire(key_id)
            return None
        if tokens > block.tokens or nanos > block.nanos or escalations:
            return None
        block.tokens -= tokens
        block.nanos -= nanos
        block.flying += 1
        block.flying_tokens += tokens
        block.flying_nanos += nanos
        block.used_s = now_s
        return block

    def back(self, block: Block, taken: Amounts, tokens: int, nanos: int) -> Amounts | None:
        """A request used this much; what the lease is to hold from its charge on.

        `NOTHING` = it ends; `None` = it stays as it is.
        """
        block.tokens += taken.tokens - tokens
        block.nanos += taken.nanos - nanos
        block.flying -= 1
        block.flying_tokens -= taken.tokens
        block.flying_nanos -= taken.nanos
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

    def _retire(self, block: Block) -> None:
        block.retired = True
        lease_id, flying = block.asked.lease_id, block.flying
        left = block.in_flight()

        def shrink(store: Store) -> None:
            if flying:
                store.shrink(lease_id, left)
            else:
                store.release(lease_id)

        self._writer.post(shrink)
