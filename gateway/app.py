"""The HTTP surface: routes, and the life of one request in order, with one place for refusals."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engines.contract import EngineError
from gateway.admin import ROUTES, Action, Desk, admin_answer
from gateway.auth import Caller, KeyRing
from gateway.body import BodyLimits, head, offload_if_large, read_body
from gateway.cards import Card, model_list
from gateway.charging import Order
from gateway.decide import decide
from gateway.decision import Decision, Spending
from gateway.dialects import systemone
from gateway.errors import Problem, Refusal, problem, refusal
from gateway.leash import Leash
from gateway.ledger.books import Books
from gateway.metering import Metering, Served
from gateway.middleware import RequestMiddleware
from gateway.multipart import opened
from gateway.outcomes_route import outcome_routes
from gateway.plan import Means, Plan, Promised
from gateway.rates import Rates
from gateway.room import Share
from gateway.usage import PATH as USAGE_PATH
from gateway.usage_route import usage_answer
from gateway.vigil import Vigil
from gateway.witness import Witness

_LOG = logging.getLogger("tiergate")
_COLD_RETRY_S = 5.0


class Services:
    """What a request may use. Models appear when their engines are loaded."""

    def __init__(
        self,
        *,
        ring: KeyRing,
        body: BodyLimits,
        ask: systemone.AskLimits,
        deadline_s: float,
        default_model: str,
    ) -> None:
        self.ring = ring
        self.rates = Rates()
        self.metering: Metering | None = None
        """`None` = there is no ledger."""
        self.books: Books | None = None
        self.unpriced: tuple[str, ...] = ()
        """Engines without a price."""
        self.body = body
        self.ask = ask
        self.deadline_s = deadline_s
        self.default_model = default_model
        self.ready = False
        self.plans: Mapping[str, Plan] = {}
        """Model name or alias → how it is answered; empty until `ready`."""
        self.promises: Mapping[str, Promised] = {}
        """Engine → whether what was promised about it holds; only of engines with a promise."""
        self.witness: Witness | None = None
        self.vigil: Vigil | None = None
        self.cards: tuple[Card, ...] = ()
        self.engines: Mapping[str, Mapping[str, object]] = {}
        """Engine name → what `/ready` says of it."""

    def admit(self, authorization: bytes) -> Caller:
        """The caller behind an `Authorization` header.

        Raises:
            Refusal: see `KeyRing.authenticate`.
        """
        return self.ring.authenticate(authorization, time.time())

    def caller(self, request: Request) -> Caller:
        """Who sent a request. Raises: Refusal: see `admit`."""
        return self.admit(dict(request.scope["headers"]).get(b"authorization", b""))

    def plan(self, model: str | None) -> Plan:
        """The plan of a model name; of the default model for `None`.

        Raises:
            Refusal: 503 while engines are loading, 400 for a name that is not there.
        """
        if not self.ready:
            cold = Problem(
                "not_ready", "The models are still loading.", retry_after_s=_COLD_RETRY_S
            )
            raise Refusal(cold)
        found = self.plans.get(self.default_model if model is None else model)
        if found is None:
            raise refusal(
                "unknown_model",
                f"There is no model of that name; there are: {', '.join(self.plans)}.",
            )
        return found


class Ask:
    """The endpoint of a dialect: one request from headers to answer."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._services.body.room.share(scope["headers"]) as share:
                decision, replayed = await self._served(scope, receive, share)
        except (Refusal, EngineError) as error:
            await refused(error, scope)(scope, receive, send)
            return
        body = systemone.encode(decision)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-tiergate-engine", decision.steps[-1].engine.encode()),
        ]
        if decision.routes:
            headers += systemone.route_headers(decision)
        if replayed:
            headers.append((b"x-tiergate-replayed", b"true"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _served(self, scope: Scope, receive: Receive, share: Share) -> Served:
        services = self._services
        headers = dict(scope["headers"])
        caller = services.admit(headers.get(b"authorization", b""))
        caller.require("decide")
        services.rates.admit(caller, time.monotonic())
        about = head(headers)
        sent = await read_body(about, receive, services.body, share)
        most = services.ask.max_assets
        body, others = await opened(sent, about.boundary, share, max_assets=most)
        model, inquiry = await offload_if_large(
            len(body), lambda: systemone.decode(body, others, services.ask)
        )
        plan = services.plan(model)
        caller.require_model(plan.model, model or services.default_model)
        formula = systemone.formula(headers.get(b"x-tiergate-confidence")) or caller.confidence
        request_id = scope["tiergate.request_id"].decode()

        def leashed() -> Leash:
            return Leash(services.deadline_s, self._late, receive)

        async def read(spending: Spending, most_escalations: int | None = None) -> Decision:
            cost_of_error = plan.rules.cost_by_key.get(caller.name)
            means = Means(services.deadline_s, most_escalations, cost_of_error)
            decision = await decide(inquiry, plan, means, spending)
            if services.witness is not None and decision.routes:
                services.witness.saw(caller, request_id, plan, inquiry, decision)
            return decision

        if services.metering is None:
            with leashed():
                return Served((await read(Spending())).by(formula))
        order = Order(
            caller,
            request_id,
            model,
            plan,
            inquiry,
            sent,
            headers.get(b"idempotency-key") or None,
            headers.get(b"x-typesafe-retry-count", b"0") != b"0",
        )
        decision, replayed = await services.metering.serve(order, leashed, read)
        return Served(decision.by(formula), replayed)

    def _late(self) -> Refusal:
        seconds = f"{self._services.deadline_s:g} s"
        return refusal("late", f"No answer within {seconds}; the work was ended.")


def refused(error: Refusal | EngineError, scope: Scope) -> Response:
    """The answer to a request that was refused; what is our own fault is logged."""
    found = problem(error)
    if found.kind in ("broken", "internal"):
        request_id = scope.get("tiergate.request_id", b"").decode()
        _LOG.error(found.message, exc_info=error, extra={"request_id": request_id})
    headers = dict(found.headers)
    if found.retry_after_s is not None:
        headers["retry-after-ms"] = str(max(1, round(found.retry_after_s * 1000)))
        headers["retry-after"] = str(max(1, round(found.retry_after_s)))
    return Response(
        systemone.encode_problem(found), found.status, headers, media_type="application/json"
    )


def build_app(services: Services, *, access_log: bool) -> "StraightApp":
    """The ASGI application. It opens and closes nothing; see wiring.py."""

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
        status = "ready" if services.ready else "loading"
        held = {name: one.state for name, one in services.promises.items()}
        state = {"status": status, "engines": services.engines, "promises": held}
        return _json(state, 200 if services.ready else 503)

    ask = Ask(services)
    routes = []
    for prefix in ("", "/v1"):  # clients that were told `…/v1` as their base ask for /v1/v1/…
        routes.append(Route(prefix + systemone.PATH, ask, methods=["POST"]))
        routes.append(Route(prefix + "/v1/models", models))
        routes.append(Route(prefix + USAGE_PATH, usage))
    routes += outcome_routes(services, refused)
    routes += [Route("/health", health), Route("/ready", ready)]
    routes += [Route(path, admin(action), methods=[method]) for method, path, action in ROUTES]
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
