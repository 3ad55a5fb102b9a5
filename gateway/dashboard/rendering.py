"""From numbers to HTML: the templates, what they may call, and the headers of every page."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import RedirectResponse, Response

from gateway.dashboard.files import versions
from gateway.dashboard.wording import DOUBTS, FORMULAS, LIMITS, REASONS, SCOPES
from gateway.usage_compare import dollars
from policies.pricing import NANOS

PATH = "/ui"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: browsers would then send forms with `Origin: null`.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""What a browser is told about everything under `/ui`."""
_UNKEPT = {**HEADERS, "cache-control": "no-store"}
"""For what is made for one visitor, and holds at this moment only."""


async def page(name: str, status: int = 200, **context: Any) -> Response:
    """The template `name` with this context; made on a thread."""
    text = await asyncio.to_thread(rendered, name, context)
    return Response(text, status, _UNKEPT, media_type="text/html")


def elsewhere(path: str) -> Response:
    """Has the browser get the page at `path`, and ask again the next time."""
    return RedirectResponse(path, 303, _UNKEPT)


def rendered(name: str, context: Mapping[str, Any]) -> str:
    """The HTML; whatever is put into it is escaped."""
    return _templates().get_template(name).render(context)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("gateway.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "dollars": dollars,
        "usd": usd,
        "whole": whole,
        "percent": percent,
        "moment": moment,
        "segment": segment,
        "capital": capital,
        "duration": duration,
        "shown": shown,
    }
    found.globals |= {
        "reasons": REASONS,
        "doubts": DOUBTS,
        "scope_words": SCOPES,
        "formula_words": FORMULAS,
        "limit_words": LIMITS,
        "root": PATH,
        "files": versions(),
    }
    return found


def usd(amount: str | None) -> str:
    """An amount of a report, as `$1,234.50`; `unpriced` for none."""
    return "unpriced" if amount is None else dollars(int(Decimal(amount) * NANOS))


def whole(number: float) -> str:
    """`1,234,567`."""
    return f"{number:,.0f}"


def percent(share: float) -> str:
    """`3.4 %` with a narrow space; without digits after the point where they say little."""
    value = share * 100
    digits = 1 if 0 < value < 10 or 99 < value < 100 else 0
    return f"{value:.{digits}f}\u202f%"


def moment(at: float | str) -> str:
    """Unix seconds, or a time as JSON has it, as `2026-12-01 09:05:07`, UTC."""
    found = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def segment(name: str) -> str:
    """The name as one part of a path."""
    return quote(name, safe="")


def capital(words: str) -> str:
    """The words with a capital at their begin."""
    return words[:1].upper() + words[1:]


def duration(seconds: float) -> str:
    """`90 µs`, `8.4 ms`, `12.3 s`, `4 min 5 s`, `1 h 24 min`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def shown(name: str, value: int | str | None) -> str:
    """A limit, as people read it."""
    if value is None:
        return "none"
    if name.startswith("usd"):
        return usd(str(value))
    return whole(int(value))
