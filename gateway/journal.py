"""What is written down of a request that has ended: its counts, and one line if there is a log."""

import logging
import time
from typing import Protocol

from starlette.types import Scope

from gateway.metrics import Metrics
from gateway.passage import STAGES, Passage
from gateway.proxies import Proxies

_LOG = logging.getLogger("tiergate.access")

_MAX_PATH_CHARS = 256
_PROBES = ("/health", "/ready")


class Teller(Protocol):
    """Somebody else who wants to know of every request."""

    def tell(self, scope: Scope, passage: Passage, status: int, route: str) -> None:
        """A request has ended."""
        ...


class Journal:
    """The end of every request. Confined to the event loop."""

    def __init__(self, metrics: Metrics, proxies: Proxies) -> None:
        self.metrics = metrics
        self._proxies = proxies
        self.access_log = False
        """Whether each request has a line; that a probe found all well, only where debugging."""
        self.traces: Teller | None = None

    def end(self, scope: Scope, passage: Passage, status: int) -> None:
        """A request was answered, or its caller left (499)."""
        route = route_of(scope)
        self.metrics.ended(passage, route, status)
        if self.traces is not None:
            self.traces.tell(scope, passage, status, route)
        if self.access_log:
            level = logging.DEBUG if status == 200 and route in _PROBES else logging.INFO
            if _LOG.isEnabledFor(level):
                took_s = time.perf_counter() - passage.begun_s
                _LOG.log(level, "request", extra=self._line(scope, passage, status, took_s))

    def _line(
        self, scope: Scope, passage: Passage, status: int, took_s: float
    ) -> dict[str, object]:
        """What the log says of the request: never any content, never a key."""
        line: dict[str, object] = {
            "method": scope["method"],
            "path": scope["path"][:_MAX_PATH_CHARS].encode("unicode_escape").decode(),
            "status": status,
            "ms": round(took_s * 1000, 2),
            "client": self._proxies.client_of(scope),
            "request_id": passage.request_id.decode(),
        }
        if passage.key_id:
            line["key"] = passage.key_id
        if passage.kind is not None:
            line["refused"] = passage.kind
        decision = passage.decision
        if decision is not None:
            line["model"] = decision.model
            line["engines"] = "+".join(step.engine for step in decision.steps)
            line["questions"] = len(decision.answers)
            line["tokens"] = decision.tokens
        if passage.laps is not None:
            for stage, seconds in zip(STAGES, passage.laps, strict=True):
                line[f"{stage}_ms"] = round(seconds * 1000, 2)
        return line


def route_of(scope: Scope) -> str:
    """The pattern that the path matched, so that paths make no series; `other` for none."""
    route = scope.get("route")
    return "other" if route is None else str(route.path)
