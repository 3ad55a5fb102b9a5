"""Style, scripts and the vendored chart library: small files, read once, never from elsewhere."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from gateway.errors import refusal

_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    media_type: str
    version: str
    """Part of its digest."""


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Name → file, of everything that pages refer to."""
    found = {}
    for entry in files("gateway.dashboard").joinpath("static").iterdir():
        media_type = _TYPES.get(PurePosixPath(entry.name).suffix)
        if media_type is not None:
            content = entry.read_bytes()
            version = hashlib.sha256(content).hexdigest()[:16]
            found[entry.name] = StaticFile(content, media_type, version)
    return found


def versions() -> dict[str, str]:
    """Name → the path under which this very content is found."""
    return {name: f"/ui/static/{name}?v={one.version}" for name, one in static_files().items()}


def sent(request: Request, headers: Mapping[str, str]) -> Response:
    """The file that a path names.

    Raises:
        Refusal: 404.
    """
    found = static_files().get(request.path_params["name"])
    if found is None:
        raise refusal("not_found", "There is no such file.")
    asked = request.query_params.get("v") == found.version
    kept = f"public, max-age={_YEAR_S}, immutable" if asked else "no-cache"
    sent = {**headers, "cache-control": kept}
    return Response(found.content, headers=sent, media_type=found.media_type)
