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
_MOST_DIGITS = 18
"""Of what the ledger numbers: it counts with 64 bits."""


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
        alarm_at=house.terms.alarm_at,
        standings=standings(services.promises, services.plans),
    )


async def decisions(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui/decisions`: the last charges, newest first; `before` goes further back."""
    before = request.query_params.get("before")
    last = None if before is None else _number(before)
    if last is None and before is not None:
        raise refusal("bad_request", "before is the number of a charge.")
    rows = []
    if house.services.books is not None:
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
    number, books = _number(request.path_params["number"]), house.services.books
    missing = refusal("not_found", "There is no such decision any more.")
    if number is None or books is None:
        raise missing

    def read(store: Store) -> Recalled | None:
        found = store.recent(1, before=number + 1, key_id=own(visitor))
        if not found or found[0].charge_id != number:
            return None
        charge = found[0].charge
        asked = charge.choices + charge.nouls + charge.scores
        # Callers may give all their requests one id: those that came before are not meant.
        name = charge.key_id, charge.request_id
        return Recalled(found[0], tuple(store.decisions_since(*name, charge.at_s, asked)))

    recalled = await books.read(read)
    if recalled is None:
        raise missing
    return await house.page("decision.html", visitor, here="decisions", found=recalled)


async def clear(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`POST /ui/alarms/NUMBER/clear`: somebody has seen to an alarm."""
    visitor.caller.require("admin")
    number, services = _number(request.path_params["number"]), house.services
    cleared = None
    if services.books is not None and number is not None:
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


def _number(text: str) -> int | None:
    """What counts a charge or an alarm; `None` for what counts nothing."""
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if digits else None
