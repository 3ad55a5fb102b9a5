"""What a browser sends with a form: fields and files, in memory, bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from starlette.requests import Request

from gateway.body import BodyLimits, Head, head, offload_if_large, read_body
from gateway.errors import refusal
from gateway.multipart import every_part
from gateway.room import Share

_MAX_FIELDS = 512
_MAX_BYTES = 65_536
"""Of forms without a text or an image in them."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form."""

    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Name → content, of parts that are no text."""

    def one(self, name: str) -> str:
        """The field's first value; empty when it is missing."""
        return next(iter(self.fields.get(name, ())), "")

    def every(self, name: str) -> list[str]:
        """Every value of a field, e.g. of checkboxes."""
        return list(self.fields.get(name, ()))


async def form_of(
    request: Request, limits: BodyLimits, share: Share, *, large: bool = False
) -> Form:
    """The form in a request's body; `share` holds as many bytes as it has.

    `large`: it may be as long as any request; otherwise it is short.

    Raises:
        Refusal: 408 too slow, 413 too large, 400 not well-formed, 529 no memory for it.
        CallerLeft: the caller hung up.
    """
    chosen = limits if large else replace(limits, max_bytes=_MAX_BYTES)
    body = await read_body(Head("", None, ""), request.receive, chosen, share)
    share.grow(len(body))
    media_type = request.headers.get("content-type", "")
    return await offload_if_large(len(body), lambda: _taken_apart(body, media_type))


def _taken_apart(body: bytes, media_type: str) -> Form:
    if not media_type.startswith("multipart/form-data"):
        return Form(_urlencoded(body))
    boundary = head({b"content-type": media_type.encode("latin-1")}).boundary or ""
    fields: dict[str, list[str]] = {}
    files: dict[str, bytes] = {}
    for name, content in every_part(body, boundary, max_parts=_MAX_FIELDS).items():
        if name == "image":
            files[name] = content
        else:
            # Browsers end lines with CR LF, whatever the text had.
            fields[name] = [_text(content).replace("\r\n", "\n")]
    return Form(fields, files)


def _urlencoded(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(_text(body), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise refusal("bad_request", "The form is not well-formed.") from None


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise refusal("bad_request", "The form is not UTF-8.") from None
