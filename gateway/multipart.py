"""`multipart/form-data` with a `request` part and image parts, taken apart in memory."""

from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from gateway.body import offload_if_large
from gateway.errors import refusal
from gateway.room import Share

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks


class _Parts:
    """Collects the parser's callbacks into name → content."""

    def __init__(self, max_parts: int) -> None:
        self.contents: dict[str, bytes] = {}
        self._max_parts = max_parts
        self._field = b""
        self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._data: list[bytes] = []
        self.ended = False

    def on_part_begin(self) -> None:
        self._headers, self._data = {}, []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field = self._value = b""

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        disposition, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if disposition != b"form-data" or not name:
            raise refusal("bad_request", "A multipart part has no name.")
        if name in self.contents:
            raise refusal("bad_request", "Two multipart parts have the same name.")
        if len(self.contents) > self._max_parts:
            raise refusal("bad_request", f"More than {self._max_parts} image parts.")
        self.contents[name] = b"".join(self._data)

    def on_end(self) -> None:
        self.ended = True


async def opened(
    body: bytes, boundary: str, share: Share, *, max_assets: int
) -> tuple[bytes, dict[str, bytes]]:
    """JSON and the other parts of a body.

    Raises:
        Refusal: see `parts`; 529 where there is no room for the copies.
    """
    share.grow(len(body))
    return await offload_if_large(len(body), lambda: parts(body, boundary, max_assets=max_assets))


def parts(body: bytes, boundary: str, *, max_assets: int) -> tuple[bytes, dict[str, bytes]]:
    """Content of the `request` part, and name → content of every other part.

    Raises:
        Refusal: 400 when the body is not well-formed, has no `request` part, names twice, or more
            than `max_assets` other parts.
    """
    contents = every_part(body, boundary, max_parts=max_assets)
    request = contents.pop("request", None)
    if request is None:
        raise refusal("bad_request", "The multipart body has no part named 'request'.")
    return request, contents


def every_part(body: bytes, boundary: str, *, max_parts: int) -> dict[str, bytes]:
    """Name → content of every part.

    Raises:
        Refusal: 400 when the body is not well-formed, names twice, or more than `max_parts` parts
            besides one.
    """
    collected = _Parts(max_parts)
    callbacks: MultipartCallbacks = {
        "on_part_begin": collected.on_part_begin,
        "on_header_field": collected.on_header_field,
        "on_header_value": collected.on_header_value,
        "on_header_end": collected.on_header_end,
        "on_part_data": collected.on_part_data,
        "on_part_end": collected.on_part_end,
        "on_end": collected.on_end,
    }
    try:
        parser = MultipartParser(boundary.encode("latin-1"), callbacks)
        parser.write(body)
        parser.finalize()
    except FormParserError:
        raise refusal("bad_request", "The multipart body is not well-formed.") from None
    if not collected.ended:
        raise refusal("bad_request", "The multipart body ends too early.")
    return collected.contents
