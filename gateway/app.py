"""What a request may use, and the life of one in order, with one place for refusals."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engines.contract import EngineError, Health
from gateway.auth import CALLER, Caller, KeyRing, unwritable
from gateway.body import INLINE_BYTES, WHOLE, BodyLimits, head, read_body
from gateway.cards import Card
from gateway.charging import Order
from gateway.config_prices import PricesSection
from gateway.decide import decide
from gateway.decision import Decision, Spending
from gateway.dialects import systemone
from gateway.errors import Problem, Refusal, problem, refusal
from gateway.journal import Journal
from gateway.leash import Leash
from gateway.ledger.books import Books
from gateway.ledger.calendar import Calendar
from gateway.memo import Memo
from gateway.metering import Metering, Served
from gateway.metrics import Metrics
from gateway.middleware import PASSAGE
from gateway.multipart import opened
from gateway.outcome import Outcome
from gateway.plan import Means, Plan, Promised
from gateway.proxies import Proxies
from gateway.rates import Rates
from gateway.room import Share
from gateway.vigil import Vigil
from gateway.witness import Witness

_LOG = logging.getLogger("tiergate")
_COLD_RETRY_S = 5.0


class Queue(Protocol):
    """What can be seen of a lane from outside."""

    @property
    def max_waiting(self) -> int:
        """Most inquiries that may wait."""
        ...

    @property
    def waiting(self) -> int:
        """Inquiries accepted and not yet begun."""
        ...

    @property
    def ready(self) -> int:
        """Pieces prepared for a batch and not yet taken."""
        ...

    @property
    def batch_sizes(self) -> Sequence[int]:
        """Batches read so far of 1, 2, up to 4, up to 8 … pieces; empty without batches."""
        ...


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
        self.calendar: Calendar | None = None
        """Whose days budgets are for."""
        self.prices = PricesSection()
        """For comparisons."""
        self.unpriced: tuple[str, ...] = ()
        """Engines without a price."""
        self.body = body
        self.ask = ask
        self.deadline_s = deadline_s
        self.default_model = default_model
        self.ready = False
        self.leaving = False
        """Whether the process is about to stop: it still answers, but wants no more."""
        self.reloaded = Outcome()
        self.plans: Mapping[str, Plan] = {}
        """Model name or alias → how it is answered; empty until `ready`."""
        self.promises: Mapping[str, Promised] = {}
        """Engine → whether what was promised about it holds; only of engines with a promise."""
        self.witness: Witness | None = None
        self.vigil: Vigil | None = None
        self.cards: tuple[Card, ...] = ()
        self.engines: Mapping[str, Mapping[str, object]] = {}
        """Engine name → what `/ready` says of it."""
        self.healths: Mapping[str, Callable[[], Health]] = {}
        """Engine name → how it is now."""
        self.queues: Mapping[str, Queue] = {}
        """Engine name → its lane, as far as it can be watched."""
        self.memos: Mapping[str, Memo] = {}
        """Engine name → what remembers its readings, where something does."""
        self.has_gpu = False
        """Whether any engine is meant to run on one."""
        self.proxies = Proxies()
        self.metrics = Metrics()
        self.journal = Journal(self.metrics, self.proxies)

    def admit(self, authorization: bytes) -> Caller:
        """The caller behind an `Authorization` header.

        Raises:
            Refusal: see `KeyRing.authenticate`.
        """
        return self.ring.authenticate(authorization, time.time())

    def caller(self, request: Request) -> Caller:
        """Who sent a request. Raises: Refusal: see `admit`."""
        caller = self.admit(dict(request.scope["headers"]).get(b"authorization", b""))
        request.scope[PASSAGE].key_id = caller.key_id
        return caller

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
        services, passage = self._services, scope[PASSAGE]
        try:
            with services.body.room.share(scope["headers"]) as share:
                decision, replayed = await self._served(scope, receive, share)
        except (Refusal, EngineError) as error:
            await refused(error, scope, services.metrics)(scope, receive, send)
            return
        body = systemone.encode(decision)
        passage.answered(decision)
        services.metrics.answered(passage, replayed=replayed)
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
        services, passage = self._services, scope[PASSAGE]
        headers = dict(scope["headers"])
        caller = scope.get(CALLER) or services.admit(headers.get(b"authorization", b""))
        passage.key_id = caller.key_id
        caller.require("decide")
        services.rates.admit(caller, time.monotonic())
        about = head(headers)
        whole = scope.get(WHOLE, False)
        sent = await read_body(about, receive, services.body, share, whole=whole)
        passage.received_s = perf_counter()
        body, others = sent, None
        if about.boundary is not None:
            most = services.ask.max_assets
            body, others = await opened(sent, about.boundary, share, max_assets=most)
        if len(body) <= INLINE_BYTES:
            model, inquiry = systemone.decode(body, others, services.ask)
        else:
            decoded = asyncio.to_thread(systemone.decode, body, others, services.ask)
            model, inquiry = await decoded
        passage.decoded_s = perf_counter()
        plan = services.plan(model)
        caller.require_model(plan.model, model or services.default_model)
        formula = systemone.formula(headers.get(b"x-tiergate-confidence")) or caller.confidence
        request_id = scope["tiergate.request_id"].decode()

        def leashed() -> Leash:
            spent_s = perf_counter() - passage.decoded_s  # with an earlier one that failed
            return Leash(services.deadline_s - spent_s, self._late, receive)

        async def read(spending: Spending, most_escalations: int | None = None) -> Decision:
            cost_of_error = plan.rules.cost_by_key.get(caller.name)
            passage.spending = spending
            passage.inquired_s = perf_counter()
            left_s = services.deadline_s - (passage.inquired_s - passage.decoded_s)
            means = Means(left_s, most_escalations, cost_of_error)
            decision = await decide(inquiry, plan, means, spending)
            passage.decided_s = perf_counter()
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
        served = await services.metering.serve(order, leashed, read)
        return served if formula == "jev" else Served(served[0].by(formula), served[1])

    def _late(self) -> Refusal:
        books = self._services.books
        if books is not None and books.writer.failing:
            return Refusal(unwritable())  # that is what it waited for
        seconds = f"{self._services.deadline_s:g} s"
        return refusal("late", f"No answer within {seconds}; the work was ended.")


def refused(error: Refusal | EngineError, scope: Scope, metrics: Metrics) -> Response:
    """The answer to a request that was refused; it is counted, and what is our fault is logged."""
    found = problem(error)
    scope[PASSAGE].kind = found.kind
    metrics.refused(error, found.kind)
    if found.kind in ("broken", "internal"):
        request_id = scope.get("tiergate.request_id", b"").decode()
        _LOG.error(found.message, exc_info=error, extra={"request_id": request_id})
    headers = dict(found.headers)
    if found.retry_after_s is not None:
        headers["retry-after-ms"] = str(max(1, math.ceil(found.retry_after_s * 1000)))
        headers["retry-after"] = str(max(1, math.ceil(found.retry_after_s)))
    return Response(
        systemone.encode_problem(found), found.status, headers, media_type="application/json"
    )
