"""States that were read before: what backbone and head remember of them, bounded in bytes."""

from dataclasses import dataclass

from cachetools import LRUCache
from torch import Tensor

from engines.clef.past import Past


@dataclass(frozen=True, slots=True)
class Prefix:
    """An opening that has been read."""

    past: Past
    memory: Tensor
    """[1, tokens, width]: what the head remembers of its tokens."""
    following: int
    """Position of the token after it."""

    def __len__(self) -> int:
        """Its tokens."""
        return self.past.lengths[0]

    @property
    def bytes(self) -> int:
        """On its device."""
        return self.past.bytes + self.memory.nbytes


class Prefixes:
    """Least recently used goes first. Belongs to the one thread that reads."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[bytes, Prefix] = LRUCache(max_bytes, getsizeof=lambda one: one.bytes)
        self.hits = 0
        self.misses = 0

    def get(self, key: bytes) -> Prefix | None:
        """The opening with this key, if it is still here."""
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def keep(self, key: bytes, prefix: Prefix) -> None:
        """For the next time, if it is not larger than the whole budget."""
        if prefix.bytes <= self._kept.maxsize:
            self._kept[key] = prefix

    def drop(self, key: bytes) -> None:
        """Forget one, if it is here."""
        self._kept.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    @property
    def max_bytes(self) -> int:
        """The most that may be taken."""
        return int(self._kept.maxsize)

    @property
    def bytes(self) -> int:
        """Taken now."""
        return int(self._kept.currsize)
