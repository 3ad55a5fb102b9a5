"""What the clients of a soak do: act after act, drawn from a seed, and what may come of each."""

import gzip
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from bench.bodies import bodies, text
from bench.soak_gateway import FRAGILE, MAX_BODY_BYTES, MAX_STATE_WORDS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Manner = Literal["whole", "slowly", "leaves"]
"""How a request is sent: at once, in pieces over a while, or not to the end of its answer."""

OVERLOADED = 529
"""The one status of the 5xx that is deliberate, and that any act may be answered with."""
LEFT = "left-"
"""Request ids of acts that do not wait for their answer begin with this."""

_BOUNDARY = "soak-boundary"
_PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


@dataclass(frozen=True, slots=True)
class Act:
    """One request, and the statuses that are right for it besides 529."""

    name: str
    body: bytes
    expected: frozenset[int] = frozenset({200})
    headers: tuple[str, ...] = ("Content-Type: application/json",)
    manner: Manner = "whole"
    known: bool = True
    """Whether it comes with the right key."""

    def request(self, request_id: str, key: str) -> bytes:
        """Head and body as they are sent."""
        bearer = key if self.known else "tg_nobody_has_this_key_0123456789"
        head = [
            "POST /v1/systemone HTTP/1.1",
            "Host: soak",
            f"Authorization: Bearer {bearer}",
            f"X-Request-Id: {request_id}",
            f"Content-Length: {len(self.body)}",
            *self.headers,
        ]
        return "\r\n".join([*head, "", ""]).encode() + self.body


class Acts:
    """An endless sequence of acts; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        """Draws nothing yet."""
        self._draw = random.Random(seed)
        self._bodies = {name: orjson.loads(body) for name, body in bodies().items()}
        self._weights = list(_ACTS.values())
        self._makers = list(_ACTS)

    def next(self) -> Act:
        """The next act."""
        (make,) = self._draw.choices(self._makers, self._weights)
        return make(self._draw, self._fresh)

    def _fresh(self, words: int = 0) -> dict[str, object]:
        """A good body, about something that nobody asked before."""
        draw = self._draw
        name = draw.choices(list(self._bodies), (60, 25, 10, 5))[0]
        size = words or round(10 ** draw.uniform(1, 3.8))
        state = f"{draw.getrandbits(48):x} {text(draw, 6 * min(size, 4000))}"
        return {**self._bodies[name], "state": " ".join([state] * max(1, size // 4000))}


_Fresh = Callable[..., dict[str, object]]
_Draw = random.Random


def _plain(_: _Draw, fresh: _Fresh) -> Act:
    return Act("plain", orjson.dumps(fresh()))


def _squeezed(draw: _Draw, fresh: _Fresh) -> Act:
    coding = draw.choice(["zstd", "gzip"])
    body = orjson.dumps(fresh())
    sent = zstd.compress(body) if coding == "zstd" else gzip.compress(body, 1, mtime=0)
    act = Act("squeezed", sent)
    return replace(act, headers=(*act.headers, f"Content-Encoding: {coding}"))


def _repeated(draw: _Draw, fresh: _Fresh) -> Act:
    """One of a few requests that all have their own Idempotency-Key."""
    number = draw.randrange(50)
    body = {**fresh(10), "state": f"the request number {number}", "questions": _ONE_QUESTION}
    act = Act("repeated", orjson.dumps(body))
    return replace(act, headers=(*act.headers, f"Idempotency-Key: soak-{number}"))


def _image(draw: _Draw, fresh: _Fresh) -> Act:
    """No engine of the soak sees images, so that the refusal says so; but the body is read."""
    seen = {"state": "look at the photo", "assets": {"photo": {"part": "photo"}}}
    body = orjson.dumps(fresh(20) | seen)
    image = _PNG + draw.randbytes(draw.randrange(100_000))
    form = _form(("request", "application/json", body), ("photo", "image/png", image))
    return Act("image", form, frozenset({422}), (_FORM_HEADER,))


def _broken_form(draw: _Draw, fresh: _Fresh) -> Act:
    form = _form(("request", "application/json", orjson.dumps(fresh(20))))
    cut = form[: draw.randrange(1, len(form) - 40)]
    return Act("broken form", cut, frozenset({400}), (_FORM_HEADER,))


def _broken_json(draw: _Draw, fresh: _Fresh) -> Act:
    body = orjson.dumps(fresh(50))
    return Act("broken json", body[: draw.randrange(len(body))], frozenset({422}))


def _wrong(draw: _Draw, fresh: _Fresh) -> Act:
    """Well-formed, but not what the API takes."""
    wrong: dict[str, object] = draw.choice(
        [{"questions": {}}, {"questions": {"q": None}}, {"state": 5}]
    )
    return Act("wrong", orjson.dumps(fresh(20) | wrong), frozenset({422}))


def _too_long(_: _Draw, fresh: _Fresh) -> Act:
    """More words than any engine reads."""
    return Act("too long", orjson.dumps(fresh(2 * MAX_STATE_WORDS)), frozenset({400}))


def _too_large(draw: _Draw, _: _Fresh) -> Act:
    size = MAX_BODY_BYTES + draw.randrange(1, MAX_BODY_BYTES)
    return Act("too large", b'"' + b"x" * size, frozenset({413}))


def _bomb(draw: _Draw, _: _Fresh) -> Act:
    sent = zstd.compress(b"\0" * (MAX_BODY_BYTES * draw.randrange(2, 20)))
    act = Act("bomb", sent, frozenset({413}))
    return replace(act, headers=(*act.headers, "Content-Encoding: zstd"))


def _stranger(_: _Draw, fresh: _Fresh) -> Act:
    return Act("stranger", orjson.dumps(fresh(20)), frozenset({401}), known=False)


def _unknown_model(_: _Draw, fresh: _Fresh) -> Act:
    return Act("unknown model", orjson.dumps(fresh(20) | {"model": "nobody"}), frozenset({400}))


def _fragile(_: _Draw, fresh: _Fresh) -> Act:
    """Of a model whose only engine fails now and then: the one 500 that is right."""
    return Act("fragile", orjson.dumps(fresh(20) | {"model": FRAGILE}), frozenset({200, 500}))


def _leaving(_: _Draw, fresh: _Fresh) -> Act:
    return Act("leaves", orjson.dumps(fresh()), frozenset(), manner="leaves")


def _slow(_: _Draw, fresh: _Fresh) -> Act:
    """In time or not: what takes longer than the body may is 408."""
    return Act("slow", orjson.dumps(fresh(200)), frozenset({200, 408}), manner="slowly")


_ACTS: dict[Callable[[_Draw, _Fresh], Act], int] = {
    _plain: 50,
    _squeezed: 15,
    _repeated: 5,
    _image: 4,
    _broken_form: 2,
    _broken_json: 3,
    _wrong: 3,
    _too_long: 1,
    _too_large: 1,
    _bomb: 1,
    _stranger: 2,
    _unknown_model: 1,
    _fragile: 3,
    _leaving: 6,
    _slow: 3,
}
"""How often each of them is drawn."""

_ONE_QUESTION = {"q": {"type": "noul", "instructions": "Is it so?"}}
_FORM_HEADER = f"Content-Type: multipart/form-data; boundary={_BOUNDARY}"


def _form(*parts: tuple[str, str, bytes]) -> bytes:
    """A multipart body of name, media type and content."""
    lines = b""
    for name, media_type, content in parts:
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n'
        lines += f"{head}Content-Type: {media_type}\r\n\r\n".encode() + content + b"\r\n"
    return lines + f"--{_BOUNDARY}--\r\n".encode()
