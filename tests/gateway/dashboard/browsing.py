"""A browser without scripts: it keeps cookies, reads forms, sends them as people do."""

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from gateway.config import Settings
from tests.gateway.conftest import Gateway, bearer

LOCAL = "http://127.0.0.1:8080"

_TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')


def token(page: httpx.Response) -> str:
    """What the page's forms carry."""
    found = _TOKEN.search(page.text)
    assert found is not None, page.text
    return found[1]


def text(page: httpx.Response) -> str:
    """The page's words, without tags and with single blanks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


async def send(client: httpx.AsyncClient, path: str, origin: str = "", **fields: Any) -> Any:
    """Open the page at `origin` (default: `path`) and send its form with these fields."""
    page = await client.get(origin or path)
    return await client.post(path, data={"token": token(page), **fields})


async def log_in(client: httpx.AsyncClient, key: str) -> httpx.Response:
    """The answer to a login, which is followed by nothing."""
    return await send(client, "/ui/login", key=key)  # type: ignore[no-any-return]


@contextmanager
def local(client: httpx.AsyncClient) -> Iterator[httpx.AsyncClient]:
    """The same gateway under the name of this machine."""
    client.base_url = httpx.URL(LOCAL)
    yield client


def admin_key(settings: Settings, name: str = "root") -> str:
    """The bearer text of a new key that may do everything."""
    made = bearer(settings, name, scopes=["admin"])
    return made["authorization"].removeprefix("Bearer ")


def png() -> bytes:
    """A white pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


__all__ = ["Gateway", "admin_key", "bearer", "local", "log_in", "png", "send", "text", "token"]
