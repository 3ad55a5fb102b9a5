"""From a wording and a state to a row of token ids, exactly as Laya lays it out.

`[CLS] instructions [SEP] [MASK] option … [MASK] option [SEP] state [SEP]`
"""

from dataclasses import dataclass
from functools import lru_cache

from tokenizers import Tokenizer

from engines.contract import Kind
from engines.laya.checkpoint import Specials
from engines.laya.wording import Wording, state_text

_OPTION_TOKENS = 48
_LEAST_INSTRUCTIONS = 8
_LEAST_OPTION = 4
_RESERVE = 16
"""When options leave less than this for the instructions, they are cut to equal shares."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a row may be, in tokens."""

    max_len: int
    head_max_len: int


@dataclass(frozen=True, slots=True)
class State:
    """The tokens of a state, shared by all questions of an inquiry."""

    ids: tuple[int, ...]
    keep_last: bool
    """A list keeps its end when it is too long, everything else its beginning."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Tokens that did not fit."""

    state: int
    instructions: int
    options: int
    shortened: int
    """Options cut to their share of the head; that Laya reads no option beyond its first 48
    tokens does not count here."""
    merged: bool
    """Whether two options became the same."""

    @property
    def total(self) -> int:
        """All dropped tokens together."""
        return self.state + self.instructions + self.options


@dataclass(frozen=True, slots=True)
class Row:
    """One question, ready to be run."""

    kind: Kind
    ids: tuple[int, ...]
    markers: tuple[int, ...]
    """Position of the mask in front of each option, in slot order; those that fit."""
    order: tuple[int, ...] | None
    """As in the wording."""
    options: int
    losses: Losses
    whole: int
    """Tokens the row would have if nothing had been dropped."""


class Tokens:
    """A checkpoint's tokenizer, with the texts that come again and again remembered."""

    def __init__(
        self, tokenizer: Tokenizer, specials: Specials, *, harden: bool, cached_texts: int = 8192
    ) -> None:
        """`harden` neutralises every special token in a text; otherwise only the mask is."""
        tokenizer.encode_special_tokens = harden
        self.specials = specials
        self._tokenizer = tokenizer
        self._blanked = specials.texts if harden else ()
        self._remembered = lru_cache(maxsize=cached_texts)(self._ids)

    def state(self, state: object) -> State:
        """The state's tokens. Never remembered."""
        return State(self._ids(state_text(state)), isinstance(state, list))

    def option(self, text: str) -> tuple[int, ...]:
        """The ids of an option's text, whole."""
        return self._remembered(f" {text}")

    def row(self, wording: Wording, state: State, budget: Budget) -> Row:
        """The row of one question; what does not fit is dropped and counted."""
        order = wording.order or range(len(wording.options))
        whole_options = [self.option(wording.options[i]) for i in order]
        whole_head = self._remembered(f"{wording.kind} question: {wording.instructions}")
        capped = options = [ids[:_OPTION_TOKENS] for ids in whole_options]
        left = budget.head_max_len - sum(len(ids) + 1 for ids in options)
        if left < _RESERVE:
            share = max(_LEAST_OPTION, (budget.head_max_len - _RESERVE) // len(options))
            options = [ids[: share - 1] for ids in options]
            left = budget.head_max_len - sum(len(ids) + 1 for ids in options)
        head = whole_head[: max(_LEAST_INSTRUCTIONS, left)]

        ids, markers = self._head(head, options)
        room = max(0, budget.max_len - len(ids) - 1)
        kept = state.ids[-room:] if state.keep_last and room else state.ids[:room]
        ids += (*kept, self.specials.sep)
        losses = Losses(
            state=len(state.ids) - len(kept),
            instructions=len(whole_head) - len(head),
            options=sum(map(len, whole_options)) - sum(map(len, options)),
            shortened=sum(cut != first for cut, first in zip(options, capped, strict=True)),
            merged=len(set(options)) < len(set(whole_options)),
        )
        return Row(
            wording.kind,
            tuple(ids[: budget.max_len]),
            tuple(at for at in markers if at < budget.max_len),
            wording.order,
            len(options),
            losses,
            len(ids) + losses.total,
        )

    def _head(
        self, instructions: tuple[int, ...], options: list[tuple[int, ...]]
    ) -> tuple[list[int], list[int]]:
        special = self.specials
        ids = [special.cls, *instructions, special.sep]
        markers = []
        for option in options:
            markers.append(len(ids))
            ids += (special.mask, *option)
        ids.append(special.sep)
        return ids, markers

    def _ids(self, text: str) -> tuple[int, ...]:
        # one text at a time: several would wake the tokenizer's own thread pool
        encoded = self._tokenizer.encode(self._neutral(text), add_special_tokens=False)
        return tuple(encoded.ids)

    def _neutral(self, text: str) -> str:
        """The text with each special token that counts as an attack replaced by a blank."""
        text = text.replace(self.specials.mask_text, " ")
        while any(found in text for found in self._blanked):
            for found in self._blanked:
                text = text.replace(found, " ")
        return text
