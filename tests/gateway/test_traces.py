"""Requests as OpenTelemetry spans: in memory, and by OTLP to a collector on a socket."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

pytest.importorskip("opentelemetry.sdk", reason="the extra 'otel' is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.config import Settings
from gateway.config_server import TracesSection
from gateway.routes import build_app
from gateway.traces import open_traces
from gateway.wiring import install, new_services
from tests.gateway.conftest import ASK, settings_of
from tests.wire.asks import ask
from tests.wire.serving import SCRIPTED, running

STAGES = ["receive", "decode", "ledger", "queue", "engine"]


async def spans_of(
    body: Any = ASK, settings: Settings | None = None, engine: Any = None, **headers: str
) -> list[ReadableSpan]:
    """What is told of one ask, in the order in which it was told."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    exporter = InMemorySpanExporter()
    chosen = settings or settings_of()
    services = new_services(chosen)
    lane = Lane("scripted", engine or ScriptedEngine(), rows(1), max_waiting=4)
    install(services, chosen, {"scripted": lane})
    with open_traces(chosen, exporter) as traces:
        services.journal.traces = traces
        transport = httpx.ASGITransport(build_app(services, access_log=False))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            await client.post("/v1/systemone", json=body, headers=named)
    lane.close(drain_s=1.0)
    return list(exporter.get_finished_spans())


async def test_an_answer_is_a_span_with_a_child_for_each_stage() -> None:
    *children, whole = await spans_of(x_request_id="mine")

    assert whole.name == "POST /v1/systemone"
    assert [child.name for child in children] == STAGES
    attributes = dict(whole.attributes or {})
    assert attributes["http.response.status_code"] == 200
    assert attributes["tiergate.request_id"] == "mine"
    assert attributes["tiergate.model"] == "scripted-1"
    assert attributes["tiergate.engines"] == ("scripted",)
    assert attributes["tiergate.tokens"] == 12
    assert whole.context is not None
    at = whole.start_time or 0
    for child in children:
        assert child.parent is not None
        assert child.parent.span_id == whole.context.span_id
        assert (child.start_time or 0) >= at
        at = child.start_time or 0
        assert at <= (child.end_time or 0) <= (whole.end_time or 0)


async def test_a_callers_trace_goes_on() -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

    spans = await spans_of(traceparent=f"00-{trace}-{parent}-01")

    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {trace}
    assert spans[-1].parent is not None
    assert f"{spans[-1].parent.span_id:016x}" == parent


@pytest.mark.parametrize("traceparent", ["00-zz", "\x7f" * 100, "", "00-" + "0" * 200])
async def test_a_damaged_trace_begins_a_new_one(traceparent: str) -> None:
    spans = await spans_of(traceparent=traceparent)

    assert spans[-1].parent is None


async def test_who_decided_not_to_be_sampled_is_not() -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    none = settings_of(traces=TracesSection(sample_ratio=0.0))

    assert await spans_of(traceparent=f"00-{trace}-{parent}-00") == []
    assert await spans_of(settings=none) == []


async def test_a_refusal_says_what_for_and_an_error_is_one() -> None:
    broken = ScriptedEngine(script=lambda *_: [float("nan")] * 2)

    (refused,) = await spans_of(ASK | {"model": "none"})
    (failed,) = await spans_of(engine=broken)

    assert (refused.attributes or {})["tiergate.refused"] == "unknown_model"
    assert refused.status.status_code is StatusCode.UNSET
    assert failed.status.status_code is StatusCode.ERROR


async def test_no_text_of_a_caller_is_in_a_span() -> None:
    questions = {"zebra": {"type": "noul", "instructions": "zebra", "criteria": {"true": "zebra"}}}

    told = [span.to_json() for span in await spans_of({"state": "zebra", "questions": questions})]

    assert told
    assert "zebra" not in "".join(told)


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """The address of something that takes spans, and what it took."""
    taken: list[ExportTraceServiceRequest] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            taken.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_gateway_sends_its_spans_to_the_collector_before_it_ends(tmp_path: Path) -> None:
    with collector() as (url, taken):
        with running(SCRIPTED + f'[traces]\nendpoint = "{url}"\n', tmp_path) as gateway:
            httpx.post(f"{gateway.url}/v1/systemone", json=ask()).raise_for_status()

        (resource,) = (one for request in taken for one in request.resource_spans)

    names = [span.name for scope in resource.scope_spans for span in scope.spans]
    assert names == [*STAGES, "POST /v1/systemone"]
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert about["service.name"] == "tiergate"


def test_a_collector_that_is_not_there_keeps_nobody_from_being_answered(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens on it afterwards
    config = f'{SCRIPTED}[traces]\nendpoint = "http://127.0.0.1:{port}/v1/traces"\n'
    with running(config + '[log]\nformat = "json"\n', tmp_path) as gateway:
        httpx.post(f"{gateway.url}/v1/systemone", json=ask()).raise_for_status()
        log = gateway.log

    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert any("export" in one["message"] for one in told)
    assert {one["level"] for one in told} <= {"info", "warning", "error"}


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:4318/v1/traces",
        "grpc://127.0.0.1:4317/v1/traces",
        "http://",
        "http:///v1/traces",
        "http://:4318/v1/traces",
        "http://[::1/v1/traces",
        "http://collector:99999/v1/traces",
        "http://collector:0/v1/traces",
        "http://collector:port/v1/traces",
        "http://the collector/v1/traces",
        "http://collector/v1/traces\n",
        "http://collector",
        "http://collector:4318/",
        "http://me:secret@collector/v1/traces",
        "http://collector/v1/traces#top",
    ],
)
def test_an_endpoint_that_cannot_work_is_refused_and_a_password_not_repeated(endpoint: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TracesSection(endpoint=endpoint)

    (error,) = refused.value.errors()
    assert "endpoint" in error["msg"] or "OTEL_EXPORTER_OTLP_HEADERS" in error["msg"]
    assert "secret" not in error["msg"]


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "http://127.0.0.1:4318/v1/traces",
        "https://[2001:db8::1]/v1/traces",
        "https://collector.example/otlp/v1/traces?team=a",
    ],
)
def test_an_endpoint_that_can_work_is_taken_as_it_is(endpoint: str) -> None:
    assert TracesSection(endpoint=endpoint).endpoint == endpoint
