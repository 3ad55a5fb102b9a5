"""The playground: a request made of a form, asked as any other, and its answer taken apart."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from gateway.auth import CALLER
from gateway.body import offload_if_large
from gateway.dashboard.forms import Form
from gateway.dashboard.house import House, Visitor
from gateway.dashboard.questions_form import (
    EXAMPLE_ROWS,
    EXAMPLE_STATE,
    IMAGE,
    KINDS,
    MOST_ROWS,
    Row,
    as_json,
    body_of,
    questions_of,
    rows_of,
)
from gateway.dashboard.snippets import KEY, snippets
from gateway.dialects import systemone
from gateway.errors import Refusal
from gateway.issuing import FORMULAS
from gateway.middleware import PASSAGE
from gateway.passage import STAGES, Passage

_MOST_RAW_CHARS = 20_000
"""Longer requests and answers are cut where they are shown as JSON."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One label and how likely it is."""

    label: str
    p: float
    first: bool
    """Whether it is the answer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One answer, ready to be looked at."""

    name: str
    kind: str
    answer: str
    confidence: float | None
    bars: tuple[Bar, ...]
    facts: Mapping[str, Any]
    """Everything else that the answer says of itself, by the wire's names."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: Any
    raw: str
    took_ms: float
    stages: tuple[tuple[str, float], ...]
    """Where the time went, name and milliseconds; empty for a refusal."""

    @property
    def threads_added_up(self) -> bool:
        """Whether the engine's time is longer than all of it took."""
        return dict(self.stages).get("engine", 0.0) > self.took_ms

    @property
    def answers(self) -> tuple[Shown, ...]:
        """The answers, in the order of the questions; none for a refusal."""
        if self.status != 200:
            return ()
        return tuple(_shown(name, one) for name, one in self.body["answers"].items())

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """Where and what, for a refusal."""
        if self.status == 200:
            return ()
        detail = self.body.get("detail") if isinstance(self.body, dict) else None
        if isinstance(detail, dict):
            return (("", str(detail.get("message", ""))),)
        return tuple(
            (" → ".join(str(part) for part in one["loc"][1:]), one["msg"]) for one in detail or ()
        )


async def empty(house: House, request: Request, visitor: Visitor, _: Form) -> Response:
    """`GET /ui/playground`: an example to begin with."""
    form = Form({"state": [EXAMPLE_STATE], "how": ["form"]})
    return await _page(house, visitor, form, EXAMPLE_ROWS)


async def played(house: House, request: Request, visitor: Visitor, form: Form) -> Response:
    """`POST /ui/playground`: another empty question, the questions as JSON, or the answers."""
    rows = rows_of(form)
    match form.one("do"):
        case "add":
            return await _page(house, visitor, form, (*rows, Row())[:MOST_ROWS])
        case "json":
            try:
                questions = as_json(questions_of(rows))
            except Refusal as error:
                return await _page(house, visitor, form, rows, error=error.problem.message)
            form = Form({**form.fields, "how": ["json"], "questions": [questions]})
            return await _page(house, visitor, form, rows)
    try:
        body = body_of(form)
    except Refusal as error:
        return await _page(house, visitor, form, rows, error=error.problem.message, status=422)
    outcome = await _asked(house, request, visitor, body, form.one("confidence"))
    keyless = visitor.session is None
    return await _page(
        house,
        visitor,
        form,
        rows,
        outcome=outcome,
        sent=_cut(as_json({n: v for n, v in body.items() if n != "assets"})),
        sent_image="assets" in body,
        key_variable=KEY,
        snippets=snippets(body, _root(request), keyless=keyless),
        status=200 if outcome.status < 500 else outcome.status,
    )


async def _page(
    house: House, visitor: Visitor, form: Form, rows: tuple[Row, ...], **more: Any
) -> Response:
    status = more.pop("status", 200)
    context = {
        "here": "playground",
        "form": form,
        "rows": rows or (Row(),),
        "kinds": KINDS,
        "most_rows": MOST_ROWS,
        "image": IMAGE,
        "formulas": FORMULAS,
        "models": tuple(house.services.plans),
        "default_model": house.services.default_model,
        "questions": form.one("questions") or as_json(questions_of(EXAMPLE_ROWS)),
        "outcome": None,
        **more,
    }
    return await house.page("playground.html", visitor, status, **context)


async def _asked(
    house: House, request: Request, visitor: Visitor, body: dict[str, Any], formula: str
) -> Outcome:
    """What `POST /v1/systemone` answers to the visitor; counted and charged like any request."""
    content = orjson.dumps(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    if formula:
        headers.append((b"x-tiergate-confidence", formula.encode("utf-8", "replace")))
    path = systemone.PATH
    passage = Passage(request.scope[PASSAGE].request_id)
    scope = {
        **request.scope,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        CALLER: visitor.caller,
        PASSAGE: passage,
    }
    waiting = [content]
    begun: Message = {}
    parts: list[bytes] = []

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await request.receive()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.update(message)
        else:
            parts.append(message.get("body", b""))

    begun_s = time.perf_counter()
    await house.ask(scope, receive, send)
    took_ms = (time.perf_counter() - begun_s) * 1000
    found = b"".join(parts)
    answer = await offload_if_large(len(found), lambda: orjson.loads(found))
    raw = _cut(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
    named = {name.decode(): value.decode() for name, value in begun["headers"]}
    stages = () if passage.laps is None else zip(STAGES[:-1], passage.laps[:-1], strict=True)
    laps_ms = tuple((stage, seconds * 1000) for stage, seconds in stages)
    return Outcome(begun["status"], named, answer, raw, took_ms, laps_ms)


def _root(request: Request) -> str:
    """The address under which the browser reaches the gateway."""
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme)
    return f"{'https' if scheme == 'https' else 'http'}://{request.url.netloc}"


def _cut(text: str) -> str:
    if len(text) <= _MOST_RAW_CHARS:
        return text
    return f"{text[:_MOST_RAW_CHARS]}\n… and {len(text) - _MOST_RAW_CHARS:,} characters more"


def _shown(name: str, answer: Mapping[str, Any]) -> Shown:
    kind = answer["type"]
    facts = {field: value for field, value in answer.items() if field.startswith("x_")}
    if kind == "noul":
        p = answer["noul"]
        bars: tuple[Bar, ...] = (Bar("yes", p, p >= 0.5), Bar("no", 1 - p, p < 0.5))
        return Shown(name, kind, "yes" if p >= 0.5 else "no", None, bars, facts)
    shares = answer["probabilities"]
    if kind == "choice":
        bars = tuple(Bar(label, p, label == answer["choice"]) for label, p in shares.items())
        return Shown(name, kind, answer["choice"], answer["confidence"], bars, facts)
    likeliest = max(shares.values())
    legend = answer["legend"]
    bars = tuple(
        Bar(f"{level} · {_words(legend[level])}", p, p == likeliest) for level, p in shares.items()
    )
    return Shown(name, kind, f"{answer['score']:.2f}", answer["confidence"], bars, facts)


def _words(level: Any) -> str:
    return level if isinstance(level, str) else orjson.dumps(level).decode()
