"""Hypothesis strategies: requests that must be answered, and bytes that nobody should send."""

import json
from typing import Any

from hypothesis import strategies as st

_NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS | _NAMES
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)

TEXTS: st.SearchStrategy[Any] = (
    _NAMES | st.lists(_VALUES, max_size=4) | st.dictionaries(_NAMES, _VALUES, max_size=4)
)
"""What the wire takes for prose: strings, objects, arrays."""

_OPTIONAL = st.none() | TEXTS


def _question(kind: str, criteria: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind), "criteria": criteria}, optional={"instructions": _OPTIONAL}
    )


NOULS = st.fixed_dictionaries(
    {"type": st.just("noul"), "instructions": TEXTS},
    optional={
        "criteria": st.none()
        | st.fixed_dictionaries({}, optional={"true": _OPTIONAL, "false": _OPTIONAL})
    },
)
CHOICES = _question("choice", st.dictionaries(_NAMES, _OPTIONAL, min_size=1, max_size=12))
SCORES = _question("score", st.lists(TEXTS, min_size=1, max_size=10))

ASKS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "state": TEXTS,
        "questions": st.dictionaries(_NAMES, NOULS | CHOICES | SCORES, min_size=1, max_size=4),
    },
    optional={"model": st.sampled_from(["jev-latest", None]), "x_extra": _VALUES},
)
"""Bodies that must be answered."""

_PLACES = ("state", "questions", "model", "assets")


@st.composite
def almost(draw: st.DrawFn) -> dict[str, Any]:
    """A good body with one thing, somewhere, replaced by something else."""
    body: Any = json.loads(json.dumps(draw(ASKS)))
    node, key = body, draw(st.sampled_from(_PLACES))
    while isinstance(node.get(key), dict) and node[key] and draw(st.booleans()):
        node = node[key]
        key = draw(st.sampled_from([*node, "type", "criteria", "instructions"]))
    node[key] = draw(_VALUES)
    found: dict[str, Any] = body
    return found


_TOKENS = st.sampled_from(
    [
        *(b'{ } [ ] , : " \\ null true 1e999 -0 NaN Infinity "\\ud800" "\\u0000" 0x1 1.'.split()),
        b'"state"',
        b'"questions"',
        b'"type"',
        b'"noul"',
        b'"choice"',
        b'"criteria"',
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xed\xa0\x80",
        b"\0",
        b"9" * 5000,
        b"[" * 600,
        b'{"a":' * 300,
    ]
)


@st.composite
def soup(draw: st.DrawFn) -> bytes:
    """Pieces of JSON in no good order, or a good body with a stretch of it overwritten."""
    pieces = b"".join(draw(st.lists(_TOKENS, max_size=20)))
    if draw(st.booleans()):
        return pieces
    body = json.dumps(draw(ASKS), ensure_ascii=draw(st.booleans())).encode()
    at = draw(st.integers(0, len(body)))
    return body[:at] + pieces + body[at + draw(st.integers(0, 40)) :]


_HEADER_VALUES = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=60
)

HEADERS: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {},
    optional={
        "authorization": _HEADER_VALUES,
        "content-type": st.sampled_from(
            [
                "application/json; charset=utf-16",
                "application/json;;;=;charset",
                "application/vnd.api+json",
                "text/plain",
                "multipart/form-data",
                "multipart/form-data; boundary=",
                'multipart/form-data; boundary="',
                "multipart/form-data; boundary=edge",
                "multipart/form-data; boundary=" + "b" * 300,
                ";",
            ]
        )
        | _HEADER_VALUES,
        "content-encoding": st.sampled_from(
            ["gzip", "zstd", "x-gzip", "identity", "gzip, zstd", "br", "deflate", ",", "GZIP "]
        ),
        "x-request-id": _HEADER_VALUES,
        "x-typesafe-request-id": _HEADER_VALUES,
        "x-typesafe-retry-count": _HEADER_VALUES,
        "accept": _HEADER_VALUES,
        "accept-encoding": _HEADER_VALUES,
        "expect": _HEADER_VALUES,
    },
)
"""Headers that may stand beside a right Content-Length."""

_DISPOSITIONS = st.sampled_from(
    [
        b'form-data; name="request"',
        b'form-data; name="asset-0"; filename="asset-0"',
        b"form-data; name=request",
        b'form-data; name="',
        b"form-data",
        b"attachment; name=request",
        b"form-data; name*=UTF-8''request",
        b'form-data; name="\xff\x00"',
    ]
)


@st.composite
def forms(draw: st.DrawFn) -> bytes:
    """Multipart bodies with the boundary `edge`, most of them with something wrong."""
    contents = st.binary(max_size=40) | st.just(b"\x89PNG\r\n\x1a\n") | soup()
    body = b""
    for _ in range(draw(st.integers(0, 4))):
        body += draw(st.sampled_from([b"--edge\r\n", b"--edge\n", b"--edg\r\n", b""]))
        body += b"Content-Disposition: " + draw(_DISPOSITIONS)
        body += draw(st.sampled_from([b"\r\n\r\n", b"\r\n", b"\n\n"])) + draw(contents) + b"\r\n"
    return body + draw(st.sampled_from([b"--edge--\r\n", b"--edge--", b"--edge", b""]))
