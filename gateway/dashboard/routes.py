"""The pages under `/ui`: who may see them, what forms must carry, and which path leads to what."""

import logging
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.app import Services
from gateway.dashboard import key_pages, pages, playground
from gateway.dashboard.files import sent
from gateway.dashboard.forms import Form, form_of
from gateway.dashboard.house import COOKIE, House, Visitor, Work
from gateway.dashboard.rendering import HEADERS, PATH, elsewhere, page
from gateway.dashboard.terms import PageTerms
from gateway.dashboard.visits import Visits, stranger
from gateway.errors import Refusal, refusal
from gateway.keys import prefix_of
from gateway.ledger.store import StoreError
from gateway.middleware import PASSAGE

_LOG = logging.getLogger("tiergate")


def dashboard_routes(services: Services, terms: PageTerms, ask: ASGIApp) -> list[BaseRoute]:
    """Every route under `/ui`."""
    house = House(services, terms, Visits(terms.session_s), ask)
    works: list[tuple[str, str, Work]] = [
        ("GET", "", pages.first),
        ("GET", "/", pages.first),
        ("GET", "/decisions", pages.decisions),
        ("GET", "/decisions/{number}", pages.decision),
        ("POST", "/alarms/{number}/clear", pages.clear),
        *key_pages.WORKS,
    ]
    routes: list[BaseRoute] = [
        Route(PATH + "/login", _login_page(house), methods=["GET"]),
        Route(PATH + "/login", _login(house), methods=["POST"]),
        Route(PATH + "/logout", _guarded(house, _logout), methods=["POST"]),
        Route(PATH + "/static/{name}", _static(house), methods=["GET"]),
        Route(PATH + "/playground", _guarded(house, playground.empty), methods=["GET"]),
        Route(
            PATH + "/playground",
            _guarded(house, playground.played, large=True),
            methods=["POST"],
        ),
    ]
    routes += [
        Route(PATH + path, _guarded(house, work), methods=[method]) for method, path, work in works
    ]
    routes.append(Route(PATH + "/{rest:path}", _guarded(house, _missing)))
    return routes


def _guarded(house: House, work: Work, *, large: bool = False) -> Callable[..., Any]:
    """The endpoint: a visitor, and for a POST a form of ours, before any work is done."""

    async def endpoint(request: Request) -> Response:
        try:
            visitor = visitor_of(house, request)
        except Refusal as error:
            return await _refused_stranger(house, request, error)
        request.scope[PASSAGE].key_id = visitor.caller.key_id
        body = house.services.body
        try:
            with body.room.share(request.scope["headers"]) as share:
                form = Form()
                if request.method == "POST":
                    form = await form_of(request, body, share, large=large)
                    _refuse_strange_form(house, request, visitor.cookie, form)
                found = await work(house, request, visitor, form)
        except Refusal as error:
            found = await _refused(house, visitor, error)
        except StoreError:
            down = refusal("ledger_down", "The ledger cannot be read at the moment.")
            found = await _refused(house, visitor, down)
        if visitor.session is None:
            _keep(found, request, visitor.cookie)
        return found

    return endpoint


def visitor_of(house: House, request: Request) -> Visitor:
    """Who looks at a page.

    Raises:
        Refusal: `key_missing` for somebody who has to log in, 401 or 403 for one whose key has
            changed since, 403 for a name of this machine that is not its own.
    """
    services, cookie = house.services, request.cookies.get(COOKIE, "")
    session = house.visits.session(cookie)
    if session is not None:
        caller = services.ring.standing(session.prefix, time.time())
        caller.require("admin")
        return Visitor(caller, cookie, house.visits.token(cookie), session)
    caller = services.admit(b"")  # whoever comes without a key, where there are none
    if not _of_this_machine(request):
        sentence = "Without keys this page is for this machine only: open it as http://127.0.0.1."
        raise refusal("forbidden", sentence)
    cookie = cookie or stranger()
    return Visitor(caller, cookie, house.visits.token(cookie), None)


def _of_this_machine(request: Request) -> bool:
    """Whether the page was asked for by a name that only this machine has.

    Other pages in the same browser can give a name of theirs our address.
    """
    name = request.url.hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _refuse_strange_form(house: House, request: Request, cookie: str, form: Form) -> None:
    """Raises: Refusal: 403 for a form that does not come from a page of ours."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none") or not house.visits.fits(cookie, form.one("token")):
        sentence = "This form is too old, or not from here; go back, reload the page, try again."
        raise refusal("forbidden", sentence)


async def _refused_stranger(house: House, request: Request, error: Refusal) -> Response:
    """The login page for who has to log in, or the reason why not."""
    if error.problem.kind in ("key_missing", "key_wrong") and request.method == "GET":
        return elsewhere(PATH + "/login")
    status, message = error.problem.status, error.problem.message
    return await page("refused.html", status, visitor=None, message=message, notice=None)


async def _refused(house: House, visitor: Visitor, error: Refusal) -> Response:
    found = error.problem
    return await house.page("refused.html", visitor, found.status, message=found.message)


async def _missing(house: House, _: Request, visitor: Visitor, __: Form) -> Response:
    raise refusal("not_found", "There is no such page.")


def _login_page(house: House) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        try:
            visitor_of(house, request)
        except Refusal as error:
            if error.problem.kind == "forbidden":
                return await _refused_stranger(house, request, error)
            return await _asked_to_log_in(house, request)
        return elsewhere(PATH)

    return endpoint


async def _asked_to_log_in(
    house: House, request: Request, error: str = "", status: int = 200
) -> Response:
    cookie = stranger()
    found = await page(
        "login.html",
        status,
        visitor=None,
        notice=None,
        error=error,
        token=house.visits.token(cookie),
        ledger=house.services.books is not None,
    )
    _keep(found, request, cookie)
    return found


def _login(house: House) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        client = house.services.proxies.client_of(request.scope)
        try:
            house.visits.admit_try(client, time.monotonic())
            body = house.services.body
            with body.room.share(request.scope["headers"]) as share:
                form = await form_of(request, body, share)
            _refuse_strange_form(house, request, request.cookies.get(COOKIE, ""), form)
            cookie = _opened(house, form.one("key").strip().encode(), client)
        except Refusal as error:
            _LOG.warning("a login failed", extra={"client": client, "why": error.problem.kind})
            found = error.problem
            return await _asked_to_log_in(house, request, found.message, found.status)
        house.visits.close(request.cookies.get(COOKIE, ""))
        response = elsewhere(PATH)
        _keep(response, request, cookie)
        return response

    return endpoint


def _opened(house: House, bearer: bytes, client: str) -> str:
    """The cookie of a new session; `client` is the address it is for.

    Raises:
        Refusal: 401 or 403 for a key that is no admin's.
    """
    caller = house.services.ring.authenticate(b"Bearer " + bearer, time.time())
    prefix = prefix_of(bearer)
    if "admin" not in caller.scopes or prefix is None:
        raise refusal("forbidden", "Only a key with the scope 'admin' opens this page.")
    _LOG.info("a login", extra={"key": caller.key_id, "client": client})
    return house.visits.open(prefix)


async def _logout(house: House, _: Request, visitor: Visitor, __: Form) -> Response:
    house.visits.close(visitor.cookie)
    response = elsewhere(PATH + "/login")
    response.delete_cookie(COOKIE, path=PATH)
    return response


def _static(house: House) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        try:
            return sent(request, HEADERS)
        except Refusal as error:
            return Response(error.problem.message, error.problem.status, HEADERS)

    return endpoint


def _keep(response: Response, request: Request, cookie: str) -> None:
    """Have the browser keep the cookie, and send it to nobody but these pages."""
    # A client that lies about its connection only makes its own cookie stricter.
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    response.set_cookie(COOKIE, cookie, path=PATH, secure=secure, httponly=True, samesite="strict")
