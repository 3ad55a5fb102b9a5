"""Room in a budget that is held for more than one request, so that most need not ask the store.

A block is a lease of the store; requests take their upper bounds from it and give back what they
did not use. What a block holds and what was settled from it never exceed what was leased. Confined
to the event loop.
"""

from dataclasses import dataclass

from gateway.ledger.budget import Admission, Held
from gateway.ledger.store import Store
from gateway.ledger.writer import Writer
from policies.limits import NOTHING, Amounts

_IDLE_S = 1.0


@dataclass(slots=True)
class Block:
    """A lease and what is left of it."""

    asked: Admission
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

    def take(self, asked: Admission) -> Block | None:
        """The block that holds room for the claim; `None` = the store has to be asked."""
        block, claim = self._blocks.get(asked.key_id), asked.claim
        if block is None or claim is None or (born := block.asked.claim) is None:
            return None
        if not (
            born.limits is claim.limits
            and born.windows is claim.windows
            and block.asked.now_s <= asked.now_s < block.until_s
        ):
            self.retire(asked.key_id)
            return None
        wanted = claim.amounts
        if wanted.tokens > block.tokens or wanted.nanos > block.nanos or wanted.escalations:
            return None
        block.tokens -= wanted.tokens
        block.nanos -= wanted.nanos
        block.flying += 1
        block.flying_tokens += wanted.tokens
        block.flying_nanos += wanted.nanos
        block.used_s = asked.now_s
        return block

    def back(self, block: Block, taken: Amounts, tokens: int, nanos: int) -> bool:
        """A request used this much; whether the lease is to be released with its charge."""
        block.tokens += taken.tokens - tokens
        block.nanos += taken.nanos - nanos
        block.flying -= 1
        block.flying_tokens -= taken.tokens
        block.flying_nanos -= taken.nanos
        return block.retired and block.flying == 0

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
        left = Amounts(block.flying_tokens, 0, block.flying_nanos)

        def shrink(store: Store) -> None:
            if flying:
                store.shrink(lease_id, left)
            else:
                store.release(lease_id)

        self._writer.post(shrink)
