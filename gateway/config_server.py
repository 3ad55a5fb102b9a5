"""`[server]` and `[log]`: where the gateway listens, whom it believes, what it writes."""

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from gateway.config_section import Section
from gateway.proxies import network_of


def _network(text: str) -> str:
    network_of(text)
    return text


class ServerSection(Section):
    """`[server]`: where the gateway listens and how long it waits."""

    host: str = "127.0.0.1"
    """Address to bind. Anything but a loopback address needs `[auth.keys]`."""
    port: int = Field(default=8080, ge=0, le=65_535)
    """Port to bind; 0 lets the system choose one."""
    deadline_s: float = Field(default=8.0, gt=0, le=600)
    """Longest time from a complete body to the answer. The official SDK gives up after 10 s and
    asks again, so stay below."""
    body_deadline_s: float = Field(default=30.0, gt=0, le=600)
    """Longest time a request body may take to arrive before the answer is 408."""
    keep_alive_s: int = Field(default=65, ge=1, le=3600)
    """How long an idle connection stays open. The official SDK keeps its own for 30 s."""
    drain_s: float = Field(default=10.0, ge=0, le=600)
    """On shutdown: how long accepted requests may still take."""
    leave_s: float = Field(default=0.0, ge=0, le=600)
    """On SIGTERM: how long requests are still taken while `/ready` says 503 already, so that
    whoever stands in front sends them elsewhere; over its health check's interval."""
    backlog: int = Field(default=2048, ge=1, le=65_535)
    """Connections the system holds before they are accepted."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(
        default=(), strict=False
    )
    """Addresses or networks, e.g. `"127.0.0.1"` or `"10.0.0.0/8"`, whose X-Forwarded-For is
    believed when it says where a request comes from."""


class LogSection(Section):
    """`[log]`: what is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe event that is written."""
    format: Literal["text", "json"] = "text"
    """One line per event, for people or for machines."""
    access: bool = False
    """One line per request: method, path, status, client, request id, key id, model, engines,
    tokens, milliseconds by stage. Never any content. `/health` and `/ready` that are 200 have one
    only at the level debug."""


class TracesSection(Section):
    """`[traces]`: OpenTelemetry spans of requests; needs the extra `otel`."""

    endpoint: str = ""
    """Where spans are sent by OTLP over HTTP, e.g. `"http://127.0.0.1:4318/v1/traces"`; empty =
    nowhere. Headers for it stand in the environment variable OTEL_EXPORTER_OTLP_HEADERS."""
    sample_ratio: float = Field(default=1.0, ge=0, le=1)
    """Share of the requests that are sent, where the caller has not decided in `traceparent`."""

    @field_validator("endpoint")
    @classmethod
    def _refuse_no_address(cls, endpoint: str) -> str:
        if endpoint:
            _refuse_what_no_collector_has(endpoint)
        return endpoint


def _refuse_what_no_collector_has(endpoint: str) -> None:
    """Raises: ValueError: nothing can be sent there; with a sentence."""
    if not endpoint.startswith(("http://", "https://")):
        raise ValueError("an endpoint begins with http:// or https://")
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or re.search(r"[^!-~]", endpoint):
        raise ValueError("an endpoint is an address such as http://127.0.0.1:4318/v1/traces")
    if parts.username is not None:
        raise ValueError("no name or password here; they stand in OTEL_EXPORTER_OTLP_HEADERS")
    if parts.path in ("", "/"):
        raise ValueError("an endpoint has a path, with most collectors /v1/traces")
    if parts.fragment:
        raise ValueError("an endpoint has no #")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
