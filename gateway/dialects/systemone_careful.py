"""Requests read until something is wrong; large ones then question by question until it is enough.

pydantic notes the whole path to a fault, question id included, with each fault, and all faults
before anybody can say that it is enough: what 200 KB can get wrong would be gigabytes of them.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Any, Required, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator, from_json, to_json
from typing_extensions import TypedDict

from gateway.dialects.systemone_assets import refuse_many
from gateway.dialects.systemone_faults import MAX_FAULTS, found_by, unfit
from gateway.dialects.systemone_schema import (
    ASK,
    MAX_OPTIONS,
    Ask,
    AssetEntry,
    Question,
    Text,
)

_MUCH = 8_000_000
"""Bytes of a request times its values, from which on it is large."""


class _Frame(TypedDict, total=False):
    """An `Ask` whose questions and assets may be anything."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore")  # type: ignore[misc]

    state: Required[Text]
    model: str | None
    questions: Required[Annotated[dict[str, Any], Field(min_length=1)]]
    assets: Annotated[dict[str, Any], Field(min_length=1)]
    x_lang: str | None


_FRAME: TypeAdapter[_Frame] = TypeAdapter(_Frame)
_PARTS: Mapping[str, TypeAdapter[Any]] = {
    "questions": TypeAdapter(Question),
    "assets": TypeAdapter(AssetEntry),
}


def _hasty(schema: Any) -> Any:
    """The schema, but ending at the first fault in each object and array."""
    match schema:
        case dict():
            copied = {name: _hasty(part) for name, part in schema.items()}
            ends = {"fail_fast": True} if copied.get("type") in ("dict", "list") else {}
            return copied | ends
        case list() | tuple():
            return type(schema)(map(_hasty, schema))
        case _:
            return schema


_HASTY = SchemaValidator(_hasty(ASK.core_schema))


def hasty_ask(body: bytes, structures: list[object]) -> Ask | None:
    """What `ASK.validate_json` returns, `None` where that would raise, however much is wrong.

    Texts that have a structure are put into `structures`.
    """
    try:
        return cast("Ask", _HASTY.validate_json(body, context=structures))
    except ValidationError:
        return None


def is_large(body: bytes, values: int) -> bool:
    """Whether a request of at most so many values could have too many faults to note them all."""
    return len(body) * values > _MUCH


def careful_ask(
    body: bytes, refuse_ids: Callable[[Mapping[str, object]], None], max_assets: int
) -> Ask:
    """What `ASK.validate_json` returns.

    Raises:
        Refusal: 422 with the location of at most about `MAX_FAULTS` faults; 400 for too many
            assets; whatever `refuse_ids` raises about the questions' ids.
        ValidationError: it is no JSON.
    """
    try:
        content = from_json(body)
    except ValueError:
        return ASK.validate_json(body)  # says where
    refuse_ids(_parts(content, "questions"))
    refuse_many(_parts(content, "assets"), max_assets)
    found, rest = _wrong(_FRAME, content), False
    for field, form in _PARTS.items():
        for name, part in _parts(content, field).items():
            if len(found) > MAX_FAULTS * len(_PARTS):
                rest = True
                break
            looked_at = _trimmed(part)
            rest = rest or looked_at is not part
            for fault in _wrong(form, looked_at):
                fault["loc"] = (field, name, *fault["loc"])
                found.append(fault)
    if found:
        raise unfit(found, rest=rest)
    return cast("Ask", content)


def _parts(content: Any, field: str) -> Mapping[str, Any]:
    """The questions or assets in parsed JSON; none where there is something else."""
    found = content.get(field) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def _wrong(form: TypeAdapter[Any], content: Any) -> list[ErrorDetails]:
    """What is wrong with parsed JSON, in the words for JSON."""
    try:
        form.validate_python(content)
    except ValidationError:
        try:
            form.validate_json(to_json(content))
        except ValidationError as error:
            return found_by(error)
    return []


def _trimmed(question: Any) -> Any:
    """The same without options beyond those that are already too many."""
    if isinstance(question, dict) and question.get("type") == "choice":
        options = question.get("criteria")
        if isinstance(options, dict) and len(options) > MAX_OPTIONS + 1:
            return question | {"criteria": dict(islice(options.items(), MAX_OPTIONS + 1))}
    return question
