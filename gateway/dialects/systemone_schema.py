"""The request of TypeSafe's System One API (OpenAPI 0.2.0), as pydantic reads it.

TypedDicts rather than models: the validated value is the parsed JSON itself, a third cheaper.
Unknown fields are ignored everywhere, as the hosted API does; values are never coerced.
"""

from typing import Annotated, Any, Literal, Required, TypeAlias, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, Tag, TypeAdapter, ValidationInfo
from typing_extensions import TypedDict

MAX_OPTIONS = 255
MAX_LEVELS = 10

_FORM = ConfigDict(strict=True, extra="ignore", use_attribute_docstrings=True)

T = TypeVar("T")


def _noted(structure: T, info: ValidationInfo) -> T:
    """The structure as it is, put into the list that is the context of a validation."""
    if info.context is not None:
        info.context.append(structure)
    return structure


_Object: TypeAlias = Annotated[dict[str, Any], AfterValidator(_noted), Tag("dict[str,any]")]
_Array: TypeAlias = Annotated[list[Any], AfterValidator(_noted), Tag("list[any]")]
"""Tags are the names in the locations of faults that pydantic would give them itself."""

Text: TypeAlias = Annotated[str | _Object | _Array, Field(union_mode="left_to_right", title="Text")]
OptionalText: TypeAlias = Annotated[
    str | _Object | _Array | None, Field(union_mode="left_to_right", title="Text")
]


class NoulOutcomes(TypedDict, total=False):
    """What a yes and a no mean; either may be left out."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    true: OptionalText
    """What a yes means."""
    false: OptionalText
    """What a no means."""


class NoulQuestion(TypedDict, total=False):
    """A yes/no question. It needs instructions or at least one described outcome."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    type: Required[Literal["noul"]]
    instructions: OptionalText
    """What is asked."""
    criteria: NoulOutcomes | None
    """What a yes and a no mean."""


class ChoiceQuestion(TypedDict, total=False):
    """One of several named options."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    type: Required[Literal["choice"]]
    instructions: OptionalText
    """What is asked."""
    criteria: Required[
        Annotated[dict[str, OptionalText], Field(min_length=1, max_length=MAX_OPTIONS)]
    ]
    """Option name → description; names are returned byte for byte, in this order."""


class ScoreQuestion(TypedDict, total=False):
    """A level on an ordered scale."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    type: Required[Literal["score"]]
    instructions: OptionalText
    """What is asked."""
    criteria: Required[Annotated[list[Text], Field(min_length=1, max_length=MAX_LEVELS)]]
    """What each level means, lowest first."""


class BoxQuestion(TypedDict, total=False):
    """Where something is in an image. Understood, and refused: no model here can answer it."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    type: Required[Literal["box"]]
    instructions: OptionalText
    """What is looked for."""


Question: TypeAlias = Annotated[
    NoulQuestion | ChoiceQuestion | ScoreQuestion | BoxQuestion, Field(discriminator="type")
]


class AssetEntry(TypedDict, total=False):
    """An image: a part of a multipart body, or base64 in place. `part` wins over the other."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    type: Literal["image"] | None
    format: Literal["png", "jpg", "jpeg", "webp"] | None
    """Informative; the bytes are looked at."""
    data_base64: str | None
    part: str | None
    """Name of the multipart part that holds the bytes; each part belongs to one asset."""


class Ask(TypedDict, total=False):
    """A state and typed questions about it."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    state: Required[Text]
    """What is judged: a string, an object or an array; empty ones are valid."""
    model: str | None
    """A model of `GET /v1/models`; left out = the default model."""
    questions: Required[Annotated[dict[str, Question], Field(min_length=1)]]
    """Question id → question; ids are returned byte for byte, in this order."""
    assets: Annotated[dict[str, AssetEntry], Field(min_length=1)]
    """Reference → image; the reference occurs in the state, instructions or criteria."""
    x_lang: str | None
    """The language of the texts, as `de` or `en-GB`, for models that would have to guess it."""


ASK: TypeAdapter[Ask] = TypeAdapter(Ask)
