"""The first page, and the last decisions."""

import time

from starlette.requests import Request
from starlette.responses import Response

from gateway.dashboard.forms import Form
from gateway.dashboard.house import House, Visitor
from gateway.dashboard.overview import NEAR, PERIODS, Asked, overview, standings
from gateway.errors import refusal

_DEFAULT_PERIOD = "30d"
_ROWS = 100


async def first(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui`: five questions at a glance."""
    services, terms = house.services, house.terms
    since = request.query_params.get("since", _DEFAULT_PERIOD)
    if since not in PERIODS:
        since = _DEFAULT_PERIOD
    found = None
    if services.books is not None:
        asked = Asked(since, time.time(), own(visitor))
        windows = terms.calendar.windows(asked.now_s)
        found = await services.books.read(
            lambda store: overview(
                store, asked, terms.prices, windows, budgets=visitor.session is not None
            )
        )
    return await house.page(
        "overview.html",
        visitor,
        here="overview",
        found=found,
        since=since,
        periods=PERIODS,
        near=NEAR,
        standings=standings(terms.tiers, services.promises, services.plans),
    )


async def decisions(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui/decisions`: the last charges, newest first; `before` goes further back."""
    before = request.query_params.get("before")
    if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
        raise refusal("bad_request", "before is the number of a charge.")
    rows = []
    if house.services.books is not None:
        last = None if before is None else int(before)
        rows = await house.services.books.read(
            lambda store: store.recent(_ROWS, before=last, key_id=own(visitor))
        )
    return await house.page(
        "decisions.html",
        visitor,
        here="decisions",
        rows=rows,
        before=before,
        more=len(rows) == _ROWS,
        ledger=house.services.books is not None,
    )


def own(visitor: Visitor) -> str | None:
    """The only key whose numbers the visitor may see; `None` = all of them."""
    return None if "admin" in visitor.caller.scopes else visitor.caller.key_id
