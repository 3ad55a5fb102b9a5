"""Bodies that are hardly JSON (W26)."""

import httpx
import pytest

from .asks import ask, raw
from .wellformed import decision, refusal


@pytest.mark.parametrize(
    "body",
    [
        b'{"state": "\\ud800 alone", "questions": {"n": {"type": "noul", "instructions": "?"}}}',
        b'{"state": [NaN], "questions": {"n": {"type": "noul", "instructions": "?"}}}',
        b'{"state": [1e999], "questions": {"n": {"type": "noul", "instructions": "?"}}}',
        b'{"state": "\xff", "questions": {"n": {"type": "noul", "instructions": "?"}}}',
        b'{"state": "\xed\xa0\x80", "questions": {"n": {"type": "noul", "instructions": "?"}}}',
        raw(ask(state="deep")).replace(b'"deep"', b"[" * 5000 + b"]" * 5000),
        raw(ask(state="deep")).replace(b'"deep"', b'{"a":' * 5000 + b"1" + b"}" * 5000),
        b"[" * 100_000,
        b"\xef\xbb\xbf" + raw(),
        raw().decode().encode("utf-16"),
        raw() + b"\0",
        raw().replace(b'"state"', b'"st\0ate"'),
        raw() + b" {}",
        b"",
        b"\0" * 64,
    ],
    ids=[
        "lone surrogate",
        "NaN",
        "overflow",
        "not UTF-8",
        "encoded surrogate",
        "deep array",
        "deep object",
        "open brackets",
        "BOM",
        "UTF-16",
        "NUL after",
        "NUL inside",
        "two values",
        "empty",
        "NULs",
    ],
)
def test_w26_json_that_is_hardly_json_is_a_4xx(http: httpx.Client, body: bytes) -> None:
    response = http.post("/v1/systemone", content=body)

    assert response.status_code == 422, response.text
    refusal(response.content)
    assert http.get("/health").status_code == 200


def test_w26_of_a_duplicate_key_the_last_one_counts(http: httpx.Client) -> None:
    body = raw().replace(b'{"state": ', b'{"state": 5, "state": ')

    response = http.post("/v1/systemone", content=body)

    assert response.status_code == 200
    decision(ask(), response.content)
