"""Each request as an OpenTelemetry span with a child for each stage, told when it has ended.

Nothing is measured for it: the times are those of the `Passage`. Never content, never a key.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from starlette.types import Scope

from gateway import __version__
from gateway.config import Settings
from gateway.passage import Passage
from gateway.wiring_engines import CannotStart

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

_EXPORT_S = 3
"""How long a batch is tried; an ending gateway waits no longer for a collector."""

_Times: TypeAlias = tuple[str, float, float]


class Traces:
    """Tells a tracer of requests. Any thread."""

    def __init__(self, tracer: "Tracer") -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._parents = TraceContextTextMapPropagator()

    def tell(self, scope: Scope, passage: Passage, status: int, route: str) -> None:
        """Begin and end the spans of a request that has just ended."""
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        ended_s = time.perf_counter()
        offset_ns = time.time_ns() - int(ended_s * 1e9)
        headers = {name.decode("latin-1"): one.decode("latin-1") for name, one in scope["headers"]}
        span = self._tracer.start_span(
            f"{scope['method']} {route}",
            context=self._parents.extract(headers),
            kind=SpanKind.SERVER,
            start_time=offset_ns + int(passage.begun_s * 1e9),
        )
        if span.is_recording():
            _describe(span, passage, status, route)
            if status >= 500:
                span.set_status(Status(StatusCode.ERROR))
            within = set_span_in_context(span)
            for name, begun_s, stage_ended_s in _stages(passage):
                begun_ns = offset_ns + int(begun_s * 1e9)
                child = self._tracer.start_span(name, context=within, start_time=begun_ns)
                child.end(end_time=offset_ns + int(stage_ended_s * 1e9))
        span.end(end_time=offset_ns + int(ended_s * 1e9))


def _describe(span: "Span", passage: Passage, status: int, route: str) -> None:
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    span.set_attribute("tiergate.request_id", passage.request_id.decode())
    if passage.key_id:
        span.set_attribute("tiergate.key", passage.key_id)
    if passage.kind is not None:
        span.set_attribute("tiergate.refused", passage.kind)
    decision = passage.decision
    if decision is not None:
        span.set_attribute("tiergate.model", decision.model)
        span.set_attribute("tiergate.engines", [step.engine for step in decision.steps])
        span.set_attribute("tiergate.questions", len(decision.answers))
        span.set_attribute("tiergate.tokens", decision.tokens)
        span.set_attribute("tiergate.escalated", decision.escalated)


def _stages(passage: Passage) -> Iterator[_Times]:
    """Name, begin and end of each stage; the engine's at the end of the reading it is part of."""
    if passage.laps is None:
        return
    yield "receive", passage.begun_s, passage.received_s
    yield "decode", passage.received_s, passage.decoded_s
    if passage.decided_s:  # otherwise somebody else read for it
        engine_s = passage.decided_s - min(passage.laps[4], passage.decided_s - passage.inquired_s)
        yield "ledger", passage.decoded_s, passage.inquired_s
        yield "queue", passage.inquired_s, engine_s
        yield "engine", engine_s, passage.decided_s


@contextmanager
def open_traces(
    settings: Settings, exporter: "SpanExporter | None" = None
) -> Iterator[Traces | None]:
    """Where to tell of requests; `None` without an endpoint. On leaving, what was told is sent, or
    given up where nobody takes it within seconds.

    `exporter` instead of the one for `traces.endpoint`.

    Raises:
        CannotStart: the extra is not installed.
    """
    section = settings.traces
    if not section.endpoint and exporter is None:
        yield None
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
    except ImportError as error:
        raise CannotStart(
            f"traces.endpoint needs the package '{error.name}'; "
            "install the extra, in tiergate's folder: pip install '.[otel]'"
        ) from error
    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(section.sample_ratio),
        resource=Resource.create({"service.name": "tiergate", "service.version": __version__}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(exporter or OTLPSpanExporter(section.endpoint, timeout=_EXPORT_S))
    )
    try:
        yield Traces(provider.get_tracer("tiergate", __version__))
    finally:
        provider.shutdown()
