"""What every engine promises: questions in, log-weights out. Stands on the standard library alone.

An engine turns an `Inquiry` into pieces of work (`prepare`, any thread) and reads pieces in
batches (`read`, on a thread of its lane). What its distributions mean is decided in policies/.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

from engines.appetite import USUAL, Appetite
from engines.value import value

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""A JSON value as a parser gives it: finite numbers, dicts in the sender's order."""

Text: TypeAlias = str | list["Json"] | dict[str, "Json"]
"""What the wire allows where a person would write prose: a string, or structured content."""

Kind = Literal["noul", "choice", "score"]

NativeConfidence = Literal["entropy", "top"]
"""One minus the normalised entropy, or the largest probability; of a noul always the latter."""


@value
class Noul:
    """A yes/no question. Labels: `("true", "false")`."""

    instructions: Text | None = None
    true: Text | None = None
    """What a yes means, if the asker said so."""
    false: Text | None = None


@value
class Choice:
    """One of several named options. Labels: the option names in the asker's order."""

    options: Mapping[str, Text | None]
    """Option name → description; at least one."""
    instructions: Text | None = None


@value
class Score:
    """A level on an ordered scale. Labels: `"0"` … `"n-1"`, lowest level first."""

    levels: Sequence[Text]
    """At least one."""
    instructions: Text | None = None


Question: TypeAlias = Noul | Choice | Score


@dataclass(frozen=True, slots=True)
class Asset:
    """An image sent along with an inquiry."""

    media_type: Literal["image/png", "image/jpeg", "image/webp"]
    content: bytes = field(repr=False)


@value
class Inquiry:
    """A state and the questions asked about it."""

    state: Text
    questions: Mapping[str, Question]
    """Question id → question, in the asker's order. The id must never influence an answer."""
    assets: Mapping[str, Asset] = field(default_factory=dict)
    """Reference → image; the reference occurs as or inside a string of the inquiry."""
    language: str | None = None
    """The asker's hint, a code as `de` or `en-GB`; `None` = find out."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What an engine left out of a question, where its operator allows that and only there."""

    kept_tokens: int
    dropped_tokens: int
    """At least: an engine need not count a huge text to its end."""


@value
class Reading:
    """What an engine makes of one question."""

    log_weights: Sequence[float]
    """One finite unnormalised log-probability per label, in label order."""
    tokens: int
    """Tokens the engine read for it, at least 0."""
    doubt: str | None = None
    """A machine-readable reason why the engine does not vouch for this reading."""
    cut: Cut | None = None
    """`None` = the engine read every token."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine says of itself; shown by `/ready` and `tiergate models`."""

    model: str
    """The model's own name, e.g. `all-MiniLM-L6-v2-int8`."""
    digest: str
    """What identifies weights, tokenizer and encoding together; answers change only with it."""
    max_tokens: int | None = None
    """The longest sequence it reads; `None` = no limit of its own."""
    not_competent: frozenset[Kind] = frozenset()
    """Kinds whose readings carry the doubt `not_competent`."""
    device: str = "cpu"
    """Where it runs, which need not be where it was meant to."""
    images: bool = False
    """Whether it can see the images of an inquiry."""
    joint: bool = False
    """Whether it reads the questions of an inquiry together, so that it cannot be asked some."""
    native_confidence: NativeConfidence | None = None
    """The formula of the confidence that the model's own server reports; `None` = it has none."""
    notes: str = ""
    """One sentence for a person choosing a model."""
    appetite: Appetite = USUAL
    """How many tokens it may make of an inquiry."""


@dataclass(frozen=True, slots=True)
class Health:
    """How an engine is, as `/ready` shows it."""

    state: Literal["ready", "resting", "loading", "lost"] = "ready"
    """`resting`: it has let go of its weights until somebody asks; `lost`: only a new process can
    mend it."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Things that happened since the start, by name."""


class Tally:
    """What reading an inquiry has cost so far, for callers who pay also when there is no answer."""

    __slots__ = ("spent_s", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        """Tokens of every piece whose reading has begun."""
        self.spent_s = 0.0
        """Seconds of reading, without waiting, for the pieces whose reading has ended; a batch's
        time is shared equally by its pieces."""


class Prepared(Protocol):
    """A piece of an inquiry, ready to be read: one question, or all of them for a joint engine."""

    @property
    def tokens(self) -> int:
        """Tokens that reading it costs; a lane fills its batches by this number."""
        ...


P = TypeVar("P", bound=Prepared)


class Engine(Protocol[P]):
    """Something that answers questions.

    Laws (tests/engines/test_laws.py): a question reads the same alone and in company; its id
    means nothing; sharing a batch changes nothing; too long is `Unreadable`, never truncated.
    """

    @property
    def facts(self) -> Facts:
        """The same value for the life of the engine."""
        ...

    @property
    def health(self) -> Health:
        """How it is now; called on any thread."""
        return Health()

    def prepare(self, inquiry: Inquiry) -> Sequence[P]:
        """Pieces that can be read apart from each other; together they cover every question.

        Called on any thread, several at a time.

        Raises:
            Unreadable: the inquiry is not for this engine; nothing was read.
        """
        ...

    def read(self, batch: Sequence[P]) -> Sequence[Mapping[str, Reading]]:
        """For each piece, in batch order: question id → reading.

        Called on threads of the engine's lane only.

        Raises:
            Broken: the engine failed; the batch can be tried again.
        """
        ...

    def close(self) -> None:
        """Let go of memory and devices. Called once, after the last `read`."""
        ...


class Reason(enum.StrEnum):
    """Why a question is not for an engine. Cascades route on these, so they never change."""

    TOO_LONG = "too_long"
    OPTIONS_CUT = "options_cut"
    INSTRUCTIONS_CUT = "instructions_cut"
    TOO_MANY_OPTIONS = "too_many_options"
    LANGUAGE = "language"
    IMAGES = "images"
    UNKNOWN_QUESTION = "unknown_question"


class EngineError(Exception):
    """An engine did not answer. The message is for the caller: no paths, no input text."""


class Unreadable(EngineError):
    """The caller's fault: this engine cannot read this. Asking again changes nothing."""

    def __init__(
        self,
        message: str,
        *,
        reason: Reason,
        question: str | None = None,
        tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.of_each: Mapping[str, Reason] = {} if question is None else {question: reason}
        """Question id → why, for every question that cannot be read; see `prepared_each`."""
        self.reason = reason
        self.question = question
        """Id of the question that cannot be read; `None` = the inquiry as a whole."""
        self.tokens = tokens
        self.max_tokens = max_tokens


def prepared_each(
    questions: Mapping[str, Question], prepare: Callable[[str, Question], P]
) -> list[P]:
    """What `prepare` makes of each question, in order.

    Raises: Unreadable: the first one's, with all in `of_each`, to ask again without them.
    """
    pieces = []
    first: Unreadable | None = None
    refused: dict[str, Reason] = {}
    for name, question in questions.items():
        try:
            pieces.append(prepare(name, question))
        except Unreadable as error:
            first = first or error
            refused[name] = error.reason
    if first is not None:
        first.of_each = refused
        try:
            raise first
        finally:
            del first  # it knows this frame: if that knew it, what both hold would stay
    return pieces


class Busy(EngineError):
    """Come back later."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Loading(Busy):
    """Come back when the engine has its weights again; it is already getting them."""


class Broken(EngineError):
    """Our fault: the engine failed on something it should have read."""


def kind_of(question: Question) -> Kind:
    """The wire name of the question's kind."""
    if isinstance(question, Choice):
        return "choice"
    return "noul" if isinstance(question, Noul) else "score"


def label_count(question: Question) -> int:
    """How many labels the question has, so how many log-weights its reading must carry."""
    if isinstance(question, Choice):
        return len(question.options)
    return 2 if isinstance(question, Noul) else len(question.levels)
