"""From a wording and a state to a row of token ids, exactly as Laya lays it out.

`[CLS] instructions [SEP] [MASK] option … [MASK] option [SEP] state [SEP]`
"""

from dataclasses import dataclass

from tokenizers import Tokenizer

from engines.contract import Kind
from engines.laya.checkpoint import Specials
from engines.laya.texts import Ids, Texts
from engines.laya.wording import Wording, state_text

_LEAST_INSTRUCTIONS = 8
_LEAST_OPTION = 4
_RESERVE = 16
"""When options leave less than this for the instructions, they are cut to equal shares."""
_MEMORY_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a row may be, in tokens."""

    max_len: int
    head_max_len: int
    option_len: int = 48
    """Most that Laya reads of an option's text."""


@dataclass(frozen=True, slots=True)
class State:
    """The tokens of a state, shared by all questions of an inquiry."""

    ids: tuple[int, ...]
    keep_last: bool
    """A list keeps its end when it is too long, everything else its beginning."""
    whole: bool
    """Otherwise these are the tokens next to the kept end, more than a row holds."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Tokens that did not fit."""

    state: int
    instructions: int
    options: int
    shortened: int
    """Options cut to their share of the head."""
    cut_options: int
    """Options that lost tokens to their share or to Laya's limit of 48 tokens."""
    merged: bool
    """Whether two options became the same."""
    at_least: bool
    """Whether a text was not counted to its end, so that more was dropped than said here."""

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
    """Tokens the row would have if nothing had been dropped; more if `losses.at_least`."""


class Tokens:
    """A checkpoint's tokenizer, with the texts that come again and again remembered."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        specials: Specials,
        *,
        harden: bool,
        memory_bytes: int = _MEMORY_BYTES,
    ) -> None:
        """`harden` neutralises every special token in a text; otherwise only the mask is."""
        self.specials = specials
        self.texts = Texts(tokenizer, specials, harden=harden, memory_bytes=memory_bytes)

    def state(self, state: object, most: int | None = None) -> State:
        """The state's tokens, or some more than `most` of them. Never remembered."""
        text, keep_last = state_text(state), isinstance(state, list)
        if most is None:
            return State(self.texts.whole(text).ids, keep_last, whole=True)
        found = self.texts.enough(text, most, end=keep_last)
        return State(found.ids, keep_last, found.whole)

    def option(self, text: str, budget: Budget) -> Ids:
        """The ids of an option's text, or some more than Laya reads of one."""
        return self.texts.remembered(f" {text}", budget.option_len)

    def row(self, wording: Wording, state: State, budget: Budget) -> Row:
        """The row of one question; what does not fit is dropped and counted."""
        order = wording.order or range(len(wording.options))
        found = [self.option(wording.options[i], budget) for i in order]
        whole_options = [option.ids for option in found]
        distinct = len({one.ids if one.whole else at for at, one in enumerate(found)})
        most = max(_LEAST_INSTRUCTIONS, budget.head_max_len)
        asked = self.texts.remembered(f"{wording.kind} question: {wording.instructions}", most)
        whole_head = asked.ids
        capped = options = [ids[: budget.option_len] for ids in whole_options]
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
            cut_options=sum(len(a) < len(b) for a, b in zip(options, whole_options, strict=True)),
            merged=len(set(options)) < distinct,
            at_least=not (state.whole and all(one.whole for one in (*found, asked))),
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
