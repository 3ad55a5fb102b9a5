"""The HTTP surface: routes, and the life of one request in order, with one place for refusals."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engines.contract import EngineError
from gateway.auth import authenticate
from gateway.body import BodyLimits, head, offload_if_large, read_body
from gateway.decide import Decision, Reader, decide
from gateway.dialects import systemone
from gateway.errors import Problem, Refusal, problem, refusal
from gateway.leash import Leash
from gateway.middleware import RequestMiddleware
from gateway.multipart import parts

_LOG = logging.getLogger("tiergate")
_COLD_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class Card:
    """One name in `GET /v1/models`."""

    name: str
    description: str
    release_date: str
    """`YYYY-MM-DD`."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a model name leads to."""

    model: str
    """The concrete model, never an alias."""
    reader: Reader


class Services:
    """What a request may use. Models appear when their engines are loaded."""

    def __init__(
        self,
        *,
        digests: Mapping[bytes, str],
        body: BodyLimits,
        ask: systemone.AskLimits,
        deadline_s: float,
        default_model: str,
    ) -> None:
        self.digests = digests
        self.body = body
        self.ask = ask
        self.deadline_s = deadline_s
        self.default_model = default_model
        self.ready = False
        self.targets: Mapping[str, Target] = {}
        """Model name or alias → target; empty until `ready`."""
        self.cards: tuple[Card, ...] = ()
        self.engines: Mapping[str, Mapping[str, object]] = {}
        """Engine name → what `/ready` says of it."""

    def target(self, model: str | None) -> Target:
        """The target of a model name; of the default model for `None`.

        Raises:
            Refusal: 503 while engines are loading, 400 for a name that is not there.
        """
        if not self.ready:
            cold = Problem(
                "not_ready", "The models are still loading.", retry_after_s=_COLD_RETRY_S
            )
            raise Refusal(cold)
        found = self.targets.get(self.default_model if model is None else model)
        if found is None:
            raise refusal(
                "unknown_model",
                f"There is no model of that name; there are: {', '.join(self.targets)}.",
            )
        return found


class Ask:
    """The endpoint of a dialect: one request from headers to answer."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            decision = await self._decision(dict(scope["headers"]), receive)
        except (Refusal, EngineError) as error:
            await refused(error, scope)(scope, receive, send)
            return
        body = systemone.encode(decision)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-tiergate-engine", decision.steps[-1].engine.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _decision(self, headers: dict[bytes, bytes], receive: Receive) -> Decision:
        services = self._services
        authenticate(headers.get(b"authorization", b""), services.digests)
        about = head(headers)
        body = await read_body(about, receive, services.body)
        others: dict[str, bytes] | None = None
        if (boundary := about.boundary) is not None:
            body, others = await offload_if_large(
                len(body),
                lambda: parts(body, boundary, max_assets=services.ask.max_assets),
            )
        model, inquiry = await offload_if_large(
            len(body), lambda: systemone.decode(body, others, services.ask)
        )
        target = services.target(model)
        with Leash(services.deadline_s, self._late, receive):
            return await decide(
                inquiry, target.model, target.reader, patience_s=services.deadline_s
            )

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


def build_app(services: Services, *, access_log: bool) -> Starlette:
    """The ASGI application. It opens and closes nothing; see wiring.py."""

    async def models(request: Request) -> Response:
        try:
            authorization = dict(request.scope["headers"]).get(b"authorization", b"")
            authenticate(authorization, services.digests)
            services.target(None)
        except Refusal as error:
            return refused(error, request.scope)
        return _json(_models(services.cards))

    async def health(_: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_: Request) -> Response:
        status = "ready" if services.ready else "loading"
        state = {"status": status, "engines": services.engines}
        return _json(state, 200 if services.ready else 503)

    ask = Ask(services)
    routes = []  # the first match wins and each miss costs, so the busiest path comes first
    for prefix in ("", "/v1"):  # clients that were told `…/v1` as their base ask for /v1/v1/…
        routes.append(Route(prefix + systemone.PATH, ask, methods=["POST"]))
        routes.append(Route(prefix + "/v1/models", models))
    routes += [Route("/health", health), Route("/ready", ready)]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequestMiddleware, access_log=access_log)],
        exception_handlers={HTTPException: _unrouted},
    )
    app.router.redirect_slashes = False  # SDKs do not follow, or lose the body when they do
    return app


def _models(cards: tuple[Card, ...]) -> dict[str, object]:
    """The System One list and, beside it, the keys of an OpenAI model list."""
    return {
        "models": [
            {"name": c.name, "description": c.description, "release_date": c.release_date}
            for c in cards
        ],
        "object": "list",
        "data": [
            {
                "id": c.name,
                "object": "model",
                "created": int(datetime.fromisoformat(f"{c.release_date}T00:00Z").timestamp()),
                "owned_by": "tiergate",
            }
            for c in cards
        ],
    }


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
