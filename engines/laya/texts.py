"""Texts to token ids at a bounded cost: what comes again is remembered, what is huge is sampled."""

import sys
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache
from tokenizers import Tokenizer

from engines.laya.checkpoint import Specials

_FIRST_LOOK = 8
"""Characters looked at first for each token wanted; ordinary text has four or five a token."""
_FURTHER_LOOK = 4
"""How many times as far the next look goes when a text has fewer tokens than characters promise."""
_SEAM_TOKENS = 64
"""Tokens next to where a text was cut for looking at it: the whole text may have others there."""
_TOKEN_BYTES = 40
_ENTRY_BYTES = 400


@dataclass(frozen=True, slots=True)
class Ids:
    """The token ids of a text, or of one end of it."""

    ids: tuple[int, ...]
    whole: bool
    """Otherwise the text goes on, and there are more ids than were wanted."""


@dataclass(frozen=True, slots=True)
class _Kept:
    ids: Ids
    bytes: int


class Texts:
    """A tokenizer that looks no further into a text than its reader can use. Thread-safe."""

    def __init__(
        self, tokenizer: Tokenizer, specials: Specials, *, harden: bool, memory_bytes: int
    ) -> None:
        """`harden` neutralises every special token in a text; otherwise only the mask is."""
        tokenizer.encode_special_tokens = harden
        self._tokenizer = tokenizer
        self._mask = specials.mask_text
        self._blanked = specials.texts if harden else ()
        self._kept: LRUCache[tuple[str, int], _Kept] = LRUCache(
            memory_bytes, getsizeof=lambda kept: kept.bytes
        )
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        """About what the remembered texts take."""
        return int(self._kept.currsize)

    def whole(self, text: str) -> Ids:
        """All ids of a text, whatever that costs."""
        return Ids(self._encoded(text), whole=True)

    def enough(self, text: str, most: int, *, end: bool = False) -> Ids:
        """All ids of a text, or more than `most` of them from its beginning, or from its `end`.

        Of a text of ordinary words some eight characters per token are looked at, of one that is
        poor in tokens as many as it takes.
        """
        look = _FIRST_LOOK * (most + _SEAM_TOKENS)
        while look < len(text):
            ids = self._encoded(text[-look:] if end else text[:look])
            if len(ids) > most + _SEAM_TOKENS:
                return Ids(ids[_SEAM_TOKENS:] if end else ids[:-_SEAM_TOKENS], whole=False)
            look *= _FURTHER_LOOK
        return self.whole(text)

    def remembered(self, text: str, most: int) -> Ids:
        """As `enough`; kept for the next time if the text is short enough to be of use whole."""
        if len(text) > _FIRST_LOOK * (most + _SEAM_TOKENS):
            return self.enough(text, most)
        key = (text, most)
        with self._lock:
            found = self._kept.get(key)
        if found is not None:
            return found.ids
        ids = self.whole(text)
        entry = _Kept(ids, sys.getsizeof(text) + _TOKEN_BYTES * len(ids.ids) + _ENTRY_BYTES)
        if len(ids.ids) <= most and entry.bytes <= self._kept.maxsize:
            with self._lock:
                self._kept[key] = entry
        return ids

    def _encoded(self, text: str) -> tuple[int, ...]:
        # one text at a time: several would wake the tokenizer's own thread pool
        encoded = self._tokenizer.encode(self._neutral(text), add_special_tokens=False)
        return tuple(encoded.ids)

    def _neutral(self, text: str) -> str:
        """The text with each special token that counts as an attack replaced by a blank."""
        text = text.replace(self._mask, " ")
        while any(found in text for found in self._blanked):
            for found in self._blanked:
                text = text.replace(found, " ")
        return text
