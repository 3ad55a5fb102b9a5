"""The HTTP surface: which path leads to what."""

import time
from collections.abc import Awaitable, Callable

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
from gateway.dashboard.routes import dashboard_routes
from gateway.dashboard.terms import PageTerms
from gateway.dialects import systemone
from gateway.errors import Refusal, refusal
from gateway.middleware import RequestMiddleware
from gateway.outcomes_route import outcome_routes
from gateway.readiness import readiness
from gateway.usage import PATH as USAGE_PATH
from gateway.usage_route import usage_answer


def build_app(
    services: Services, *, access_log: bool, page: PageTerms | None = None
) -> "StraightApp":
    """The ASGI application; without a `page` there is no `/ui`.

    It opens and closes nothing; see wiring.py.
    """

    async def models(request: Request) -> Response:
        try:
            services.caller(request).require("decide")
            services.plan(None)
        except Refusal as error:
            return refused(error, request.scope)
        return _json(model_list(services.cards))

    async def usage(request: Request) -> Response:
        try:
            caller = services.caller(request)
            now_s = time.time()
            found = await usage_answer(services.books, caller, request.query_params, now_s)
        except Refusal as error:
            return refused(error, request.scope)
        return _json(found)

    def admin(action: Action) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                caller = services.caller(request)
                caller.require("admin")
                with services.body.room.share() as share:
                    body = await read_body(head({}), request.receive, services.body, share)
                desk = Desk(services.books, tuple(services.plans), services.unpriced)
                name = request.path_params.get("name", "")
                found = await admin_answer(action, caller, desk, name, body)
            except Refusal as error:
                return refused(error, request.scope)
            return _json(found, 201 if action == "create" else 200)

        return endpoint

    async def health(_: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_: Request) -> Response:
        status, engines = readiness(services.ready, services.engines, services.healths)
        held = {name: one.state for name, one in services.promises.items()}
        state = {"status": status, "engines": engines, "promises": held}
        return _json(state, 200 if status == "ready" else 503)

    ask = Ask(services)
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):  # clients that were told `…/v1` as their base ask for /v1/v1/…
        routes.append(Route(prefix + systemone.PATH, ask, methods=["POST"]))
        routes.append(Route(prefix + "/v1/models", models))
        routes.append(Route(prefix + USAGE_PATH, usage))
    routes += outcome_routes(services, refused)
    routes += [Route("/health", health), Route("/ready", ready)]
    routes += [Route(path, admin(action), methods=[method]) for method, path, action in ROUTES]
    if page is not None:
        routes += dashboard_routes(services, page, ask)
    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequestMiddleware, access_log=access_log)],
        exception_handlers={HTTPException: _unrouted},
    )
    app.router.redirect_slashes = False  # SDKs do not follow, or lose the body when they do
    return StraightApp(app, RequestMiddleware(ask, access_log=access_log))


class StraightApp:
    """Sends the busiest request past the framework's own middleware and router."""

    def __init__(self, app: Starlette, ask: ASGIApp) -> None:
        self.routes = app.routes
        """Every route, the straight ones among them."""
        self._app = app
        self._ask = ask
        self._paths = {systemone.PATH, "/v1" + systemone.PATH}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        straight = scope.get("path") in self._paths and scope.get("method") == "POST"
        await (self._ask if straight else self._app)(scope, receive, send)


async def _unrouted(request: Request, error: Exception) -> Response:
    """404 and 405 as JSON, with the methods that would do."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        allow = dict(error.headers or {})
        return refused(
            refusal("method_not_allowed", f"{request.method} is not allowed here.", **allow),
            request.scope,
        )
    return refused(refusal("not_found", "There is nothing at this path."), request.scope)


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
