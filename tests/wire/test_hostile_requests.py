"""Hypothesis against a running gateway: whatever is sent, the answer is JSON and never a 5xx."""

import gzip
import json
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .serving import Address
from .sockets import Reply, exchange, posted
from .strategies import ASKS, HEADERS, almost, forms, soup
from .wellformed import decision, refusal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.slow

_THOROUGH = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _judged(reply: Reply) -> int:
    """The status of an answer that is what every answer must be."""
    assert reply.status < 500, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-typesafe-request-id"]
    if reply.status != 200:
        refusal(reply.body)
    return reply.status


def _lines(headers: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers.items()]


@_THOROUGH
@given(body=ASKS)
def test_every_good_request_is_answered_well_formed(scripted: Address, body: Any) -> None:
    reply = exchange(scripted, posted(json.dumps(body).encode()))

    assert _judged(reply) == 200
    decision(json.loads(json.dumps(body)), reply.body)


@settings(_THOROUGH, max_examples=10)
@given(body=ASKS)
def test_the_embedded_engine_answers_well_formed_or_says_what_is_too_long(
    starter: Address, body: Any
) -> None:
    reply = exchange(starter, posted(json.dumps(body).encode()))

    if _judged(reply) == 200:
        decision(json.loads(json.dumps(body)), reply.body)
    else:
        assert "max_tokens" in reply.body.decode()


@_THOROUGH
@given(body=almost())
def test_a_request_with_one_thing_wrong_is_answered_or_refused(
    scripted: Address, body: Any
) -> None:
    reply = exchange(scripted, posted(json.dumps(body).encode()))

    if _judged(reply) == 200:
        decision(body, reply.body)
    else:
        assert reply.status in (400, 422)


@_THOROUGH
@given(body=soup(), headers=HEADERS)
def test_soup_with_any_headers_is_a_4xx_in_json(
    scripted: Address, body: bytes, headers: dict[str, str]
) -> None:
    reply = exchange(scripted, posted(body, *_lines(headers)))

    _judged(reply)


@_THOROUGH
@given(body=forms())
def test_any_multipart_body_is_answered_or_refused(scripted: Address, body: bytes) -> None:
    reply = exchange(scripted, posted(body, "Content-Type: multipart/form-data; boundary=edge"))

    assert _judged(reply) in (200, 400, 422)


@_THOROUGH
@given(
    body=soup() | ASKS.map(lambda body: json.dumps(body).encode()),
    coding=st.sampled_from(["zstd", "gzip"]),
    cut=st.tuples(st.integers(0, 200), st.integers(0, 4), st.binary(max_size=4)),
    times=st.integers(1, 3),
)
def test_any_compressed_body_is_answered_or_refused(
    scripted: Address, body: bytes, coding: str, cut: tuple[int, int, bytes], times: int
) -> None:
    squeeze = zstd.compress if coding == "zstd" else gzip.compress
    squeezed = squeeze(body) * times
    at, gone, more = cut
    sent = squeezed[:at] + more + squeezed[at + gone :]

    reply = exchange(scripted, posted(sent, f"Content-Encoding: {coding}"))

    assert _judged(reply) in (200, 400, 413, 422)


@_THOROUGH
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
    path=st.sampled_from(["/", "/v1/", "/v1/systemone", "/v1/models/", "/ready?"]).flatmap(
        lambda root: st.text(
            st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20
        ).map(lambda rest: root + rest)
    ),
)
def test_any_method_and_path_is_answered_in_json(scripted: Address, method: str, path: str) -> None:
    reply = exchange(scripted, posted(b"{}", method=method, path=path))

    assert reply.status < 500
    assert reply.headers["content-type"] == "application/json"
    json.loads(reply.body)
