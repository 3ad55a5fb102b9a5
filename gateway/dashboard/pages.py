"""The first page, the last decisions, and each of them."""

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gateway.dashboard.forms import Form
from gateway.dashboard.house import House, Visitor
from gateway.dashboard.overview import NEAR, PERIODS, Asked, overview
from gateway.dashboard.rendering import PATH, elsewhere
from gateway.dashboard.standing import standings
from gateway.dashboard.visits import Notice
from gateway.errors import refusal
from gateway.ledger.decisions import Logged
from gateway.ledger.store import Charged, Store

_DEFAULT_PERIOD = "30d"
_ROWS = 100
_MOST_NUMBER = 2**63 - 1


async def first(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui`: five questions at a glance."""
    services = house.services
    since = request.query_params.get("since", _DEFAULT_PERIOD)
    if since not in PERIODS:
        since = _DEFAULT_PERIOD
    found = None
    if services.books is not None and services.calendar is not None:
        asked = Asked(since, time.time(), own(visitor))
        windows, prices = services.calendar.windows(asked.now_s), services.prices
        budgets = visitor.session is not None
        found = await services.books.read(
            lambda store: overview(store, asked, prices, windows, budgets=budgets)
        )
    return await house.page(
        "overview.html",
        visitor,
        here="overview",
        found=found,
        since=since,
        periods=PERIODS,
        near=NEAR,
        standings=standings(services.promises, services.plans),
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


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is known about one request."""

    charged: Charged
    questions: tuple[Logged, ...]
    """In the order of asking; empty for models with one engine."""


async def decision(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui/decisions/NUMBER`: a request, question by question, without its texts."""
    number, books = request.path_params["number"], house.services.books

    def read(store: Store) -> Recalled | None:
        found = store.recent(1, before=number + 1, key_id=own(visitor))
        if not found or found[0].charge_id != number:
            return None
        charge = found[0].charge
        questions = store.decisions_of(charge.key_id, charge.request_id)
        return Recalled(found[0], tuple(reversed(questions)))

    recalled = None
    if books is not None and number < _MOST_NUMBER:
        recalled = await books.read(read)
    if recalled is None:
        raise refusal("not_found", "There is no such decision any more.")
    return await house.page("decision.html", visitor, here="decisions", found=recalled)


async def clear(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`POST /ui/alarms/NUMBER/clear`: somebody has seen to an alarm."""
    visitor.caller.require("admin")
    number, services = request.path_params["number"], house.services
    cleared = None
    if services.books is not None and number < _MOST_NUMBER:
        cleared = await services.books.writer.submit(
            lambda store: store.clear_alarm(number, time.time())
        )
    if cleared is None:
        raise refusal("not_found", "No alarm of that number holds.")
    if services.vigil is not None:
        services.vigil.obey()
    if visitor.session is not None:
        visitor.session.notice = Notice(f"The alarm about {cleared.engine} is cleared.")
    return elsewhere(PATH)


def own(visitor: Visitor) -> str | None:
    """The only key whose numbers the visitor may see; `None` = all of them."""
    return None if "admin" in visitor.caller.scopes else visitor.caller.key_id
