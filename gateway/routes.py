"""The HTTP surface: which path leads to what."""

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admin import ROUTES, Action, Desk, admin_answer
from gateway.app import Ask, Services, refused
from gateway.body import head, read_body
from gateway.cards import model_list
from gateway.config_server import is_loopback
from gateway.dashboard.routes import dashboard_routes
from gateway.dashboard.terms import PageTerms
from gateway.dialects import systemone
from gateway.errors import Refusal, refusal
from gateway.exposition import exposition
from gateway.middleware import RequestMiddleware
from gateway.outcomes_route import outcome_routes
from gateway.readiness import readiness
from gateway.usage import PATH as USAGE_PATH
from gateway.usage_route import usage_answer

METRICS_PATH = "/metrics"
_MAX_WISH_BYTES = 65_536
"""Of what somebody wants of a key."""


Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(
    services: Services, *, access_log: bool, page: PageTerms | None = None
) -> "StraightApp":
    """The ASGI application; without a `page` there is no `/ui`.

    It opens and closes nothing; see serving.py.
    """
    journal = services.journal
    journal.access_log = access_log
    ask = Ask(services)
    asks: list[Route] = []
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):  # clients that were told `…/v1` as their base ask for /v1/v1/…
        asks.append(Route(prefix + systemone.PATH, ask, methods=["POST"]))
        routes.append(Route(prefix + "/v1/models", _guarded(services, _models(services))))
        routes.append(Route(prefix + USAGE_PATH, _guarded(services, _usage(services))))
    routes += outcome_routes(services, refused)
    for path in dict.fromkeys(path for _, path, _ in ROUTES):
        actions = {method: action for method, at, action in ROUTES if at == path}
        admin = _guarded(services, _admin(services, actions))
        routes.append(Route(path, admin, methods=list(actions)))
    routes.append(Route("/health", _health))
    routes.append(Route("/ready", _ready(services)))
    routes.append(Route(METRICS_PATH, _guarded(services, _metrics(services))))
    if page is not None:
        routes += dashboard_routes(services, page, ask)
    app = Starlette(
        routes=[*asks, *routes],
        middleware=[Middleware(RequestMiddleware, journal=journal)],
        exception_handlers={HTTPException: _unrouted(services)},
    )
    app.router.redirect_slashes = False  # SDKs do not follow, or lose the body when they do
    return StraightApp(app, RequestMiddleware(ask, journal=journal), asks)


def _guarded(services: Services, work: Endpoint) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except Refusal as error:
            return refused(error, request.scope, services.metrics)

    return endpoint


def _models(services: Services) -> Endpoint:
    async def models(request: Request) -> Response:
        services.caller(request).require("decide")
        services.plan(None)
        return _json(model_list(services.cards))

    return models


def _usage(services: Services) -> Endpoint:
    async def usage(request: Request) -> Response:
        caller = services.caller(request)
        asked = request.query_params
        return _json(await usage_answer(services.books, caller, asked, time.time()))

    return usage


def _admin(services: Services, actions: Mapping[str, Action]) -> Endpoint:
    """The endpoint of a path: method → what it does."""

    async def admin(request: Request) -> Response:
        action = actions["GET" if request.method == "HEAD" else request.method]
        caller = services.caller(request)
        caller.require("admin")
        with services.body.room.share() as share:
            limits = replace(services.body, max_bytes=_MAX_WISH_BYTES)
            body = await read_body(head({}), request.receive, limits, share)
        desk = Desk(services.books, tuple(services.plans), services.unpriced)
        name = request.path_params.get("name", "")
        found = await admin_answer(action, caller, desk, name, body)
        answer = _json(found, 201 if action == "create" else 200)
        answer.headers["cache-control"] = "no-store"  # a new key stands in some of them
        return answer

    return admin


def _metrics(services: Services) -> Endpoint:
    async def metrics(request: Request) -> Response:
        services.caller(request).require("metrics")
        media_type, text = await exposition(services, request.headers.get("accept", ""))
        return Response(text, headers={"content-type": media_type})

    return metrics


async def _health(_: Request) -> Response:
    return _json({"status": "ok"})


def _ready(services: Services) -> Endpoint:
    async def ready(request: Request) -> Response:
        status, engines = readiness(services.ready, services.engines, services.healths)
        if services.leaving:
            status = "leaving"
        held = {name: one.state for name, one in services.promises.items()}
        state: dict[str, object] = {"status": status, "engines": engines, "promises": held}
        if _is_local(request):
            state["process"] = {"pid": os.getpid(), "reloaded": asdict(services.reloaded)}
        return _json(state, 200 if status == "ready" else 503)

    return ready


class StraightApp:
    """Sends the busiest request past the framework's own middleware and router."""

    def __init__(self, app: Starlette, ask: ASGIApp, asks: Sequence[Route]) -> None:
        self.routes = app.routes
        """Every route, the straight ones among them."""
        self._app = app
        self._ask = ask
        self._asks = {route.path: route for route in asks}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        route = self._asks.get(scope.get("path", ""))
        if route is None or scope.get("method") != "POST":
            return self._app(scope, receive, send)
        scope["route"] = route
        return self._ask(scope, receive, send)


def _is_local(request: Request) -> bool:
    """Whether the request comes from this machine, and from no proxy on it."""
    client = request.client
    local = client is not None and is_loopback(client.host)
    return local and not any("forwarded" in name for name in request.headers)


def _unrouted(services: Services) -> Callable[[Request, Exception], Awaitable[Response]]:
    """404 and 405 as JSON, with the methods that would do."""

    async def unrouted(request: Request, error: Exception) -> Response:
        found = refusal("not_found", "There is nothing at this path.")
        if isinstance(error, HTTPException) and error.status_code == 405:
            sentence = f"{request.method} is not allowed here."
            found = refusal("method_not_allowed", sentence, **dict(error.headers or {}))
        return refused(found, request.scope, services.metrics)

    return unrouted


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
