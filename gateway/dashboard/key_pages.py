"""Keys on the page: made, changed and ended by what the admin routes call."""

import re
import time
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway import issuing
from gateway.admin import Action, Desk, admin_answer
from gateway.dashboard.forms import Form
from gateway.dashboard.house import House, Visitor, Work
from gateway.dashboard.overview import Nearness, nearness
from gateway.dashboard.rendering import PATH, elsewhere, segment
from gateway.dashboard.visits import Notice
from gateway.dashboard.wording import LIMITS
from gateway.errors import Refusal, refusal
from gateway.ledger.store import NoSuchKey, Store

_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")
_STATES = ("active", "expired", "revoked")
_SHOWN = (401, 403, 404, 503)
"""Refusals that are a page of their own; others stand above the form."""


async def listed(house: House, _: Request, visitor: Visitor, form: Form) -> Response:
    """`GET /ui/keys`."""
    return await _listed(house, visitor, form)


async def create(house: House, _: Request, visitor: Visitor, form: Form) -> Response:
    """`POST /ui/keys`: a new key; its text is on the next page, once."""
    wish: dict[str, Any] = {"name": form.one("name").strip(), **_limits(form, given_only=True)}
    if expires := form.one("expires").strip():
        wish["expires"] = expires
    if confidence := form.one("confidence"):
        wish["confidence"] = confidence
    wish["scopes"] = form.every("scopes")
    if models := form.every("models"):
        wish["models"] = models
    try:
        made = await _answered(house, visitor, "create", "", wish)
    except Refusal as error:
        if error.problem.status in _SHOWN:
            raise
        return await _listed(house, visitor, form, error)
    return _done(visitor, made["name"], Notice(f"The key {made['name']} is made.", made["key"]))


async def info(house: House, request: Request, visitor: Visitor, form: Form) -> Response:
    """`GET /ui/keys/NAME`."""
    return await _info(house, request, visitor, form)


async def rotate(house: House, request: Request, visitor: Visitor, form: Form) -> Response:
    """`POST /ui/keys/NAME/rotate`: a new secret; its text is on the next page, once."""
    name = request.path_params["name"]
    try:
        made = await _answered(house, visitor, "rotate", name)
    except Refusal as error:
        if error.problem.status in _SHOWN:
            raise
        return await _info(house, request, visitor, form, error)
    sentence = f"{made['name']} has a new secret; the old one works for another 24 hours."
    return _done(visitor, made["name"], Notice(sentence, made["key"]))


async def revoke(house: House, request: Request, visitor: Visitor, form: Form) -> Response:
    """`POST /ui/keys/NAME/revoke`, with the box ticked that says that it is meant."""
    name = request.path_params["name"]
    if form.one("sure") != "yes":
        unsure = refusal("bad_request", "Tick the box to say that this key is to end for good.")
        return await _info(house, request, visitor, form, unsure)
    ended = await _answered(house, visitor, "revoke", name)
    return _done(visitor, ended["name"], Notice(f"{ended['name']} is revoked."))


async def limits(house: House, request: Request, visitor: Visitor, form: Form) -> Response:
    """`POST /ui/keys/NAME/limits`: every limit as it stands in the form."""
    name = request.path_params["name"]
    try:
        changed = await _answered(house, visitor, "limits", name, _limits(form))
    except Refusal as error:
        if error.problem.status in _SHOWN:
            raise
        return await _info(house, request, visitor, form, error)
    return _done(visitor, changed["name"], Notice(f"The limits of {changed['name']} are changed."))


WORKS: tuple[tuple[str, str, Work], ...] = (
    ("GET", "/keys", listed),
    ("POST", "/keys", create),
    ("GET", "/keys/{name}", info),
    ("POST", "/keys/{name}/rotate", rotate),
    ("POST", "/keys/{name}/revoke", revoke),
    ("POST", "/keys/{name}/limits", limits),
)
"""Method, path below `/ui`, page."""


async def _listed(
    house: House, visitor: Visitor, form: Form, error: Refusal | None = None
) -> Response:
    keys = None
    if visitor.session is not None:
        keys = sorted((await _answered(house, visitor, "list", ""))["keys"], key=_in_force_first)
    return await house.page(
        "keys.html",
        visitor,
        200 if error is None else error.problem.status,
        here="keys",
        keys=keys,
        form=form,
        error="" if error is None else error.problem.message,
        models=tuple(house.services.plans),
        scopes=issuing.SCOPES,
        formulas=issuing.FORMULAS,
    )


def _in_force_first(key: Mapping[str, Any]) -> tuple[int, str]:
    return _STATES.index(key["state"]), key["name"].casefold()


async def _info(
    house: House, request: Request, visitor: Visitor, form: Form, error: Refusal | None = None
) -> Response:
    key = await _answered(house, visitor, "info", request.path_params["name"])
    return await house.page(
        "key.html",
        visitor,
        200 if error is None else error.problem.status,
        here="keys",
        key=key,
        form=form,
        near=await _near(house, key["name"]),
        error="" if error is None else error.problem.message,
    )


async def _near(house: House, name: str) -> tuple[Nearness, ...]:
    books, calendar = house.services.books, house.services.calendar
    if books is None or calendar is None:
        return ()
    now_s = time.time()
    windows = calendar.windows(now_s)

    def read(store: Store) -> tuple[Nearness, ...]:
        return nearness(store, [issuing.named(store, name)], windows, now_s)

    try:
        return await books.read(read)
    except NoSuchKey:
        return ()


async def _answered(
    house: House, visitor: Visitor, action: Action, name: str, wish: Any = None
) -> dict[str, Any]:
    """What the admin routes answer. Raises: Refusal: as they do."""
    services = house.services
    desk = Desk(services.books, tuple(services.plans), services.unpriced)
    body = b"" if wish is None else orjson.dumps(wish)
    return await admin_answer(action, visitor.caller, desk, name, body)


def _limits(form: Form, *, given_only: bool = False) -> dict[str, Any]:
    """Limit → what stands in the form; `None` for an empty field, unless only others count."""
    found: dict[str, Any] = {}
    for name in LIMITS:
        said = form.one(name).strip()
        if _THOUSANDS.fullmatch(said):  # and not 2,50, which some write for 2.50
            said = said.replace(",", "")
        if not said and given_only:
            continue
        counted = said.isascii() and said.isdigit() and len(said) < 19
        found[name] = None if not said else int(said) if counted else said
    return found


def _done(visitor: Visitor, name: str, notice: Notice) -> Response:
    """To the key's page, with something to tell there once."""
    if visitor.session is not None:
        visitor.session.notice = notice
    return elsewhere(f"{PATH}/keys/{segment(name)}")
