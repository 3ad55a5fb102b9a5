"""Questions as the playground's form has them, and the body that they become."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.dashboard.forms import Form
from gateway.errors import Fault, Refusal, invalid

KINDS = {"choice": "Choice", "noul": "Yes or no", "score": "Score"}
"""Question type → what people call it."""
MOST_ROWS = 32

EXAMPLE_STATE = "I was charged twice for my March invoice, please send the money back."
IMAGE = "image-1"
"""How the texts refer to the image."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question of the form."""

    name: str = ""
    kind: str = "choice"
    instructions: str = ""
    labels: str = ""
    """A line for each option, level or outcome."""


EXAMPLE_ROWS = (
    Row(
        "team",
        "choice",
        "Which team should handle this ticket?",
        "billing: Payments, invoices and refunds\n"
        "technical: Bugs, outages and integrations\n"
        "sales: Prices, upgrades and new contracts",
    ),
    Row("refund", "noul", "Does the customer ask for money back?"),
    Row("mood", "score", "How upset is the customer?", "Calm\nAnnoyed\nAngry"),
)


def rows_of(form: Form) -> tuple[Row, ...]:
    """The form's questions, also those that are not filled in."""
    found = []
    for number in range(MOST_ROWS):
        fields = [f"{name}_{number}" for name in ("name", "kind", "instructions", "labels")]
        if fields[0] not in form.fields:
            break
        kind = form.one(fields[1])
        found.append(
            Row(
                form.one(fields[0]),
                kind if kind in KINDS else "choice",
                form.one(fields[2]),
                form.one(fields[3]),
            )
        )
    return tuple(found)


def questions_of(rows: tuple[Row, ...]) -> dict[str, Any]:
    """The questions that are filled in, as the wire has them.

    Raises:
        Refusal: 422 for two with the same id, or two options with the same name.
    """
    questions: dict[str, Any] = {}
    for row in rows:
        if not (row.name or row.instructions or row.labels.strip()):
            continue
        if row.name in questions:
            raise _fault(row.name, "Two questions have this id.")
        questions[row.name] = _question(row)
    return questions


def body_of(form: Form) -> dict[str, Any]:
    """The request that the form stands for.

    Raises:
        Refusal: 422 for JSON that is none, and as `questions_of`.
    """
    questions: Any
    if form.one("how") == "json":
        try:
            questions = orjson.loads(form.one("questions"))
        except orjson.JSONDecodeError as error:
            sentence = f"The questions are not valid JSON: line {error.lineno}, {error.msg}."
            raise invalid(Fault("json_invalid", ("questions",), sentence)) from None
    else:
        questions = questions_of(rows_of(form))
    body: dict[str, Any] = {"state": form.one("state"), "questions": questions}
    if model := form.one("model"):
        body["model"] = model
    if image := form.files.get("image"):
        packed = base64.b64encode(image).decode()
        body["assets"] = {IMAGE: {"type": "image", "data_base64": packed}}
    return body


def as_json(questions: Mapping[str, Any]) -> str:
    """The questions as people read JSON."""
    return orjson.dumps(questions, option=orjson.OPT_INDENT_2).decode()


def _question(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"type": row.kind}
    if row.instructions:
        found["instructions"] = row.instructions
    lines = [line.strip() for line in row.labels.splitlines() if line.strip()]
    match row.kind:
        case "score":
            found["criteria"] = lines
        case "noul":
            if outcomes := _named(row.name, lines):
                found["criteria"] = {
                    {"yes": "true", "no": "false"}.get(name, name): text
                    for name, text in outcomes.items()
                }
        case _:
            found["criteria"] = _named(row.name, lines)
    return found


def _named(question: str, lines: list[str]) -> dict[str, str | None]:
    """`name: what it means` line by line; the meaning may be left out."""
    found: dict[str, str | None] = {}
    for line in lines:
        name, _, meaning = line.partition(":")
        if name.strip() in found:
            raise _fault(question, f"'{name.strip()}' stands there twice.")
        found[name.strip()] = meaning.strip() or None
    return found


def _fault(question: str, sentence: str) -> Refusal:
    return invalid(Fault("value_error", ("body", "questions", question), sentence))
