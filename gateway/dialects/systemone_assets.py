"""Images of a request: from base64 or multipart parts, each claimed once, each referred to."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from engines.contract import Asset
from gateway.dialects.systemone_schema import Ask, AssetEntry
from gateway.dialects.systemone_text import texts
from gateway.errors import Refusal, refusal

_MAX_REFERENCE_BYTES = 1024
_MAX_ASSET_BYTES = 16 * 1024 * 1024


def claimed_assets(ask: Ask, parts: Mapping[str, bytes], max_assets: int) -> dict[str, Asset]:
    """Reference → image, in the asker's order.

    Raises:
        Refusal: 400 for a part nobody claims or two claim, a missing part, a reference that
            occurs nowhere, bytes that are no PNG, JPEG or WebP, or too many or too large images.
    """
    entries: Mapping[str, AssetEntry] = ask.get("assets") or {}
    refuse_many(entries, max_assets)
    claimed: set[str] = set()
    assets: dict[str, Asset] = {}
    for reference, entry in entries.items():
        if not reference.strip() or len(reference.encode()) > _MAX_REFERENCE_BYTES:
            raise _bad(f"An asset reference is 1 to {_MAX_REFERENCE_BYTES} bytes and not blank.")
        if (part := entry.get("part")) is not None:
            if part in claimed:
                raise _bad("Two assets name the same multipart part.")
            if part not in parts:
                raise _bad("An asset names a multipart part that the body does not have.")
            claimed.add(part)
            content = parts[part]
        else:
            content = _unpacked(entry.get("data_base64"))
        if len(content) > _MAX_ASSET_BYTES:
            raise _bad(f"An image has at most {_MAX_ASSET_BYTES} bytes.")
        assets[reference] = Asset(_media_type(content), content)
    if unclaimed := parts.keys() - claimed:
        raise _bad(f"{len(unclaimed)} multipart part(s) belong to no asset.")
    _refuse_unreferenced(ask, set(assets))
    return assets


def refuse_many(entries: Mapping[str, object], max_assets: int) -> None:
    """Raises: Refusal: 400 for more assets than there may be."""
    if len(entries) > max_assets:
        raise _bad(f"At most {max_assets} assets.")


def _unpacked(data_base64: str | None) -> bytes:
    if data_base64 is None:
        raise _bad("An asset has neither a part nor data_base64.")
    try:
        return base64.b64decode(data_base64, validate=True)
    except (binascii.Error, ValueError):
        raise _bad("An asset's data_base64 is not valid base64.") from None


def _media_type(content: bytes) -> Literal["image/png", "image/jpeg", "image/webp"]:
    """By the file's own first bytes, whatever the sender called it."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    raise _bad("An asset is not a PNG, JPEG or WebP image.")


def _refuse_unreferenced(ask: Ask, references: set[str]) -> None:
    for _, text in texts(ask):
        for string in _strings(text):
            references = {reference for reference in references if reference not in string}
            if not references:
                return
    if references:
        raise _bad("An asset is not referred to anywhere in state, instructions or criteria.")


def _strings(text: Any) -> Iterator[str]:
    nodes = [text]
    while nodes:
        match nodes.pop():
            case str() as string:
                yield string
            case dict() as mapping:
                nodes.extend(mapping.values())
            case list() as items:
                nodes.extend(items)


def _bad(message: str) -> Refusal:
    return refusal("bad_request", message)
