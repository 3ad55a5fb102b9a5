"""Texts to token ids at a bounded cost: pieces never merge, so what comes again is remembered."""

import json
import sys
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache
from tokenizers import Tokenizer

from engines.clef import rendering
from engines.clef.checkpoint import TOKENIZER, Checkpoint, tokenizer_of
from engines.clef.refusals import CheckpointError
from engines.clef.rendering import Worded

_FIRST_LOOK = 8
"""Characters looked at first for each token wanted; ordinary text has four or five a token."""
_FURTHER_LOOK = 4
"""How many times as far the next look goes when a text has fewer tokens than characters promise."""
_SEAM_TOKENS = 64
"""Tokens next to where a text was cut for looking at it: the whole text may have others there."""
_MEMORY_BYTES = 16 << 20
_TOKEN_BYTES = 40
_ENTRY_BYTES = 800

Ids = tuple[int, ...]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Looked:
    """The ids of a text, or of its beginning."""

    ids: Ids
    whole: bool
    """Otherwise the text goes on, and there are more ids than were wanted."""


@dataclass(frozen=True, slots=True)
class Body:
    """A question's tokens after its header; spans count from their beginning."""

    ids: Ids
    question: Span
    options: tuple[Span, ...]


class Tokens:
    """A checkpoint's tokenizer as Clef's prompts use it. Thread-safe."""

    def __init__(self, checkpoint: Checkpoint, *, harden: bool) -> None:
        """`harden`: in texts of callers nothing is a control token, whatever it looks like.

        Raises:
            CheckpointError: the tokenizer lacks a token that prompts are made of.
        """
        own = checkpoint.tokenizer()
        self._own = own
        self._foreign = _without_controls(checkpoint) if harden else own
        self.prefix = self.control(rendering.PREFIX)
        self.suffix = self.control(rendering.SUFFIX)
        self.schema = self.control(rendering.SCHEMA)
        self._options = self.control(rendering.OPTIONS)
        self._option_end = self.control(rendering.OPTION_END)
        self._field_end = self.control(rendering.FIELD_END)
        self._kept: LRUCache[object, Body | Ids] = LRUCache(_MEMORY_BYTES, getsizeof=_bytes_of)
        self._lock = Lock()
        for text in ("<|im_start|>", "<|im_end|>", "<think>", "</think>"):
            if own.token_to_id(text) is None:
                raise CheckpointError(f"{checkpoint.directory}: the tokenizer lacks '{text}'")

    @property
    def image_pad(self) -> int | None:
        """The token that stands for a piece of an image."""
        found: int | None = self._own.token_to_id(rendering.IMAGE_PAD)
        return found

    def media(self, sizes: tuple[int, ...]) -> Ids:
        """What stands for images of so many tokens each; empty for none."""
        if not sizes:
            return ()
        start, pad, end = self.control(rendering.IMAGE)
        ids: list[int] = []
        for size in sizes:
            ids += [start, *[pad] * size, end]
        return (*ids, *self.control("\n"))

    def state(self, text: str, most: int) -> Looked:
        """All ids of a state, or more than `most` of them from its beginning.

        Of a text of ordinary words some eight characters per token are looked at, of one that is
        poor in tokens as many as it takes.
        """
        look = _FIRST_LOOK * (most + _SEAM_TOKENS)
        while look < len(text):
            ids = self._encoded(text[:look])
            if len(ids) > most + _SEAM_TOKENS:
                return Looked(ids[:-_SEAM_TOKENS], whole=False)
            look *= _FURTHER_LOOK
        return Looked(self._encoded(text), whole=True)

    def header(self, place: int, name: str, kind: str) -> Ids:
        """A question's first tokens, up to its instructions."""
        key = (place, name, kind)
        found = self._remembered(key)
        if isinstance(found, tuple):
            return found
        ids = self._encoded(rendering.header(place, name, kind))
        self._keep(key, ids)
        return ids

    def body(self, question: Worded, name: str) -> Body:
        """A question's tokens after its header; its id stands in for missing instructions."""
        instructions = question.instructions or name
        key = (instructions, question.options)
        found = self._remembered(key)
        if isinstance(found, Body):
            return found
        body = self._body(instructions, question.options)
        self._keep(key, body)
        return body

    def _body(self, instructions: str, options: tuple[str, ...]) -> Body:
        ids = list(self._encoded(instructions))
        asked = (0, len(ids))
        ids += self._options
        spans = []
        for place, text in enumerate(options, start=1):
            ids += self._label(place)
            own = self._encoded(text)
            spans.append((len(ids), len(ids) + len(own)))
            ids += own
            ids += self._option_end
        return Body((*ids, *self._field_end), asked, tuple(spans))

    def _label(self, place: int) -> Ids:
        found = self._remembered(place)
        if isinstance(found, tuple):
            return found
        ids = self.control(rendering.label(place))
        self._keep(place, ids)
        return ids

    def _remembered(self, key: object) -> Body | Ids | None:
        with self._lock:
            found: Body | Ids | None = self._kept.get(key)
        return found

    def _keep(self, key: object, value: Body | Ids) -> None:
        if _bytes_of(value) <= self._kept.maxsize // 16:
            with self._lock:
                self._kept[key] = value

    def control(self, text: str) -> Ids:
        """The ids of a text of our own, in which control tokens are meant."""
        return tuple(self._own.encode(text, add_special_tokens=False).ids)

    def _encoded(self, text: str) -> Ids:
        # one text at a time: several would wake the tokenizer's own thread pool
        return tuple(self._foreign.encode(text, add_special_tokens=False).ids)


def _without_controls(checkpoint: Checkpoint) -> Tokenizer:
    """The same vocabulary without a single added token: every text is ordinary text to it."""
    path = checkpoint.directory / TOKENIZER
    tree = json.loads(path.read_text("utf-8"))
    tree["added_tokens"] = []
    return tokenizer_of(json.dumps(tree, ensure_ascii=False), str(path))


def _bytes_of(value: Body | Ids) -> int:
    """About what a remembered text takes, its key included."""
    ids = value.ids if isinstance(value, Body) else value
    spans = len(value.options) if isinstance(value, Body) else 0
    return _ENTRY_BYTES + _TOKEN_BYTES * len(ids) + 2 * _TOKEN_BYTES * spans + sys.getsizeof(value)
