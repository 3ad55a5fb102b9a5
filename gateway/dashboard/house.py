"""What every page is made with, and for whom."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.app import Services
from gateway.auth import Caller
from gateway.dashboard.forms import Form
from gateway.dashboard.rendering import page
from gateway.dashboard.terms import PageTerms
from gateway.dashboard.visits import Session, Visits

COOKIE = "tiergate_ui"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever looks at a page."""

    caller: Caller
    cookie: str
    token: str
    """What forms of the page must carry."""
    session: Session | None
    """`None` = nobody is logged in, because there are no keys."""


@dataclass(frozen=True, slots=True)
class House:
    """What pages are made with."""

    services: Services
    terms: PageTerms
    visits: Visits
    ask: ASGIApp
    """Answers `POST /v1/systemone`."""

    async def page(self, name: str, visitor: Visitor, status: int = 200, **more: Any) -> Response:
        """A page for a visitor; what was to be told once is told."""
        notice = None
        if visitor.session is not None:
            notice, visitor.session.notice = visitor.session.notice, None
        context = {"visitor": visitor, "notice": notice, "error": "", "here": "", **more}
        return await page(name, status, **context)


Work: TypeAlias = Callable[[House, Request, Visitor, Form], Awaitable[Response]]
"""Makes the page of one path."""
