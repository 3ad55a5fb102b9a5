"""Prompts: which tokens stand where, which of them a question and its options are, what is cut.

Order of a prompt: prefix, images, state, schema header, questions, suffix. The state comes before
every question, so what was computed of it serves all of them.
"""

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engines.clef.rendering import Worded
from engines.clef.tokens import Ids, Looked, Span, Tokens
from engines.contract import Cut, Reason, Unreadable


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a prompt may be, and what happens to a longer one."""

    max_tokens: int
    max_state_tokens: int | None
    truncate: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, ready for the vision tower."""

    patches: bytes = field(repr=False)
    """float32[rows × columns, values], patches of one merged token next to each other."""
    rows: int
    columns: int
    """Of patches."""
    merge: int
    digest: bytes

    @property
    def tokens(self) -> int:
        """That stand for it in a prompt."""
        return self.rows * self.columns // (self.merge * self.merge)


@dataclass(frozen=True, slots=True)
class Opening:
    """Everything before the schema: what all questions about a state share."""

    ids: Ids
    pictures: tuple[Picture, ...]
    pictures_at: tuple[int, ...]
    """Where each picture's first token stands in `ids`."""
    key: bytes
    """Equal for equal openings, and for no others."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's place in a prompt; spans count from the beginning of the schema."""

    name: str
    type: int
    question: Span
    options: tuple[Span, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A whole prompt, cut in two where the state ends."""

    opening: Opening
    schema: Ids
    """Schema header, questions and suffix."""
    questions: tuple[Asked, ...]
    cut: Cut | None

    @property
    def tokens(self) -> int:
        """Of the whole prompt."""
        return len(self.opening.ids) + len(self.schema)

    @property
    def ids(self) -> Ids:
        """Of the whole prompt."""
        return self.opening.ids + self.schema


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about, tokenised."""

    state: Looked
    pictures: tuple[Picture, ...]


def schema(tokens: Tokens, questions: Mapping[str, Worded]) -> tuple[Ids, tuple[Asked, ...]]:
    """The ids after the state, and where in them each question is; ids are read verbatim."""
    ids: list[int] = list(tokens.schema)
    asked = []
    for place, (name, question) in enumerate(questions.items(), start=1):
        ids += tokens.header(place, name, question.kind)
        body, at = tokens.body(question, name), len(ids)
        spans = tuple((at + begin, at + end) for begin, end in body.options)
        own = (at + body.question[0], at + body.question[1])
        asked.append(Asked(name, question.type, own, spans, question.labels))
        ids += body.ids
    return (*ids, *tokens.suffix), tuple(asked)


def prompt(
    tokens: Tokens,
    subject: Subject,
    questions: Mapping[str, Worded],
    limits: Limits,
    asker: str | None = None,
) -> Prompt:
    """One prompt about the subject.

    `asker` is the id that a refusal names, if the prompt is about one question alone.

    Raises:
        Unreadable: it is longer than the limits allow; with both counts.
    """
    ids, asked = schema(tokens, questions)
    media = tokens.media(tuple(picture.tokens for picture in subject.pictures))
    fixed = len(tokens.prefix) + len(media) + len(ids)
    if fixed > limits.max_tokens:
        said = "the question alone needs" if len(questions) == 1 else "the questions alone need"
        raise Unreadable(
            f"{said} {fixed} tokens, at most {limits.max_tokens} fit",
            reason=Reason.TOO_LONG if asker is None else Reason.INSTRUCTIONS_CUT,
            question=asker,
            tokens=fixed,
            max_tokens=limits.max_tokens,
        )
    room = limits.max_tokens - fixed
    if limits.max_state_tokens is not None:
        room = min(room, limits.max_state_tokens)
    state, cut = subject.state.ids, None
    if len(state) > room or not subject.state.whole:
        if not limits.truncate:
            raise _too_long(subject.state, fixed, limits, asker)
        state = state[:room]
        kept = fixed + len(state)
        cut = Cut(kept, len(subject.state.ids) - len(state))
    return Prompt(_opening(tokens, media, state, subject.pictures), ids, asked, cut)


def _too_long(state: Looked, fixed: int, limits: Limits, asker: str | None) -> Unreadable:
    least = "" if state.whole else "at least "
    most = limits.max_state_tokens
    if most is not None and len(state.ids) > most:
        message = f"the state has {least}{len(state.ids)} tokens, at most {most} fit"
        total, allowed = len(state.ids), most
    else:
        total, allowed = len(state.ids) + fixed, limits.max_tokens
        message = f"state and question have {least}{total} tokens, at most {allowed} fit"
    return Unreadable(
        message, reason=Reason.TOO_LONG, question=asker, tokens=total, max_tokens=allowed
    )


def _opening(tokens: Tokens, media: Ids, state: Ids, pictures: Sequence[Picture]) -> Opening:
    ids = tokens.prefix + media + state
    digest = hashlib.blake2b(array("q", ids).tobytes(), digest_size=16)
    starts, at = [], len(tokens.prefix)
    for picture in pictures:
        digest.update(picture.digest)
        starts.append(at + 1)  # after <|vision_start|>
        at += picture.tokens + 2
    return Opening(ids, tuple(pictures), tuple(starts), digest.digest())
