"""The HTTP side of `POST /v1/outcomes`."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from engines.contract import EngineError
from gateway.body import head, read_body
from gateway.dialects.outcomes import PATH
from gateway.errors import Refusal
from gateway.metrics import Metrics
from gateway.outcomes import outcomes_answer

if TYPE_CHECKING:
    from gateway.app import Services

Refused: TypeAlias = Callable[[Refusal | EngineError, Scope, Metrics], Response]


def outcome_routes(services: "Services", refused: Refused) -> list[Route]:
    """The route and its alias under `/v1/v1`; `refused` makes the answer of a refusal."""

    async def outcomes(request: Request) -> Response:
        try:
            caller = services.caller(request)
            services.rates.admit(caller, time.monotonic())
            about = head(dict(request.scope["headers"]))
            with services.body.room.share(request.scope["headers"]) as share:
                body = await read_body(about, request.receive, services.body, share)
                found = await outcomes_answer(services.books, caller, body)
        except Refusal as error:
            return refused(error, request.scope, services.metrics)
        return Response(orjson.dumps(found), media_type="application/json")

    return [Route(prefix + PATH, outcomes, methods=["POST"]) for prefix in ("", "/v1")]
