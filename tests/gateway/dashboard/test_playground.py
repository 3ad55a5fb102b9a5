"""The playground asks as any caller does, and shows what came back without running it."""

import contextlib
import json
import re
from html import unescape
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dashboard.forms import Form
from gateway.dashboard.questions_form import EXAMPLE_ROWS, body_of, questions_of, rows_of
from gateway.errors import Refusal
from tests.gateway.conftest import Gateway, charged, ledger_settings, settings_of
from tests.gateway.dashboard.browsing import admin_key, bearer, local, log_in, png, text, token
from tests.gateway.test_cascade_wire import cascade_settings, engines

EVIL = "</textarea><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{ 7*7 }}"


async def play(client: httpx.AsyncClient, image: bytes = b"", /, **fields: str) -> httpx.Response:
    """Send the playground's form as a browser does, with these fields instead."""
    page = await client.get("/ui/playground")
    sent = {"token": token(page), "state": "I was charged twice", "how": "json", "do": "ask"}
    files = {name: (None, value) for name, value in (sent | fields).items()}
    picture = ("x.png", image, "image/png") if image else ("", b"", "application/octet-stream")
    return await client.post("/ui/playground", files={**files, "image": picture})


async def test_the_example_is_answered_and_charged_to_the_key(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = cascade_settings(tmp_path)
    key = admin_key(settings)
    rows = {
        f"{name}_{n}": value
        for n, row in enumerate(EXAMPLE_ROWS)
        for name, value in (
            ("name", row.name),
            ("kind", row.kind),
            ("instructions", row.instructions),
            ("labels", row.labels),
        )
    }
    with gateway(settings, engines()) as client:
        await log_in(client, key)
        response = await play(client, how="form", **rows)

    said = text(response)
    assert response.status_code == 200
    assert "team billing confidence" in said
    assert "tier 1 little: confident the first engine was sure enough" in said
    assert "tier 2 big: low_confidence a cheaper engine was not sure enough" in said
    assert "20 tokens (little 12, big 8)" in said
    assert "2 went up" in said
    assert re.search(
        r"ms \(receive [\d.]+ .?s, decode [\d.]+ .?s, ledger [\d.]+ .?s, queue [\d.]+ .?s, engine",
        said,
    )
    assert said.count("Probabilities for ") == 3
    (row,) = charged(settings)
    assert row["tokens"] == 20
    assert "technical" not in json.dumps(row, default=str)


async def test_every_probability_has_a_bar_of_its_length(client: httpx.AsyncClient) -> None:
    questions = {"team": {"type": "choice", "criteria": {"a": None, "b": None, "c": None}}}
    with local(client):
        response = await play(client, questions=json.dumps(questions))
        asked = await client.post(
            "/v1/systemone", json={"state": "I was charged twice", "questions": questions}
        )

    shares = asked.json()["answers"]["team"]["probabilities"]
    table = response.text.partition('class="bars"')[2].partition("</table>")[0]
    widths = [float(width) for width in re.findall(r'class="fill" width="([\d.]+)%"', table)]
    assert widths == pytest.approx([100 * p for p in shares.values()], abs=0.01)
    assert [f"{p:.3f}" for p in shares.values()] == re.findall(r"\b0\.\d{3}\b", text_of(table))


def text_of(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", html)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"questions": "{"}, "not valid JSON"),
        ({"questions": "[]"}, "questions"),
        ({"questions": "{}"}, "at least 1 item"),
        ({"questions": '{"q": {"type": "noul"}}'}, "needs instructions"),
        ({"questions": '{"q": {"type": "noul", "instructions": "?"}}', "model": "gpt"}, "no model"),
        (
            {"questions": '{"q": {"type": "noul", "instructions": "?"}}', "confidence": "vibes"},
            "Input should be one of",
        ),
        ({"how": "form", "name_0": "q", "kind_0": "score"}, "criteria"),
        ({"how": "form", "name_0": "q", "labels_0": "a: x\na: y"}, "'a' stands there twice"),
        (
            {"how": "form", "name_0": "q", "labels_0": "a", "name_1": "q", "labels_1": "b"},
            "Two questions have this id",
        ),
    ],
)
async def test_what_cannot_be_asked_says_why_and_keeps_the_form(
    client: httpx.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    with local(client):
        response = await play(client, state="my own state", **fields)

    assert response.status_code < 500
    assert sentence in text(response)
    assert "my own state</textarea>" in response.text


async def test_an_image_is_sent_and_a_model_without_eyes_refuses_it(
    client: httpx.AsyncClient,
) -> None:
    questions = '{"q": {"type": "noul", "instructions": "Is image-1 white?"}}'
    with local(client):
        seen = await play(client, png(), questions=questions)
        unnamed = await play(client, png(), questions=questions.replace("image-1", "it"))
        broken = await play(client, b"no image", questions=questions)

    assert "This model cannot see images" in text(seen)
    assert "not referred to anywhere" in text(unnamed)
    assert "not a PNG, JPEG or WebP" in text(broken)
    assert "-F picture=@image-1.png" in text(seen)
    assert "The image lies beside it as image-1.png" in text(seen)
    assert "data_base64" not in seen.text


async def test_questions_can_be_added_and_shown_as_json(client: httpx.AsyncClient) -> None:
    fields = {"how": "form", "name_0": "team", "kind_0": "choice", "labels_0": "a: x\nb"}
    with local(client):
        more = await play(client, **fields, do="add")
        shown = await play(client, **fields, do="json")

    assert 'name="name_1"' in more.text
    assert 'value="json" checked' in shown.text
    area = shown.text.partition('name="questions"')[2].partition(">\n")[2].partition("<")[0]
    questions = json.loads(unescape(area))
    assert questions == {"team": {"type": "choice", "criteria": {"a": "x", "b": None}}}


async def test_hostile_texts_are_shown_and_not_run(client: httpx.AsyncClient) -> None:
    questions = {
        EVIL: {"type": "choice", "instructions": EVIL, "criteria": {EVIL: EVIL, "b": EVIL}},
        "s": {"type": "score", "instructions": EVIL, "criteria": [EVIL, {"x": EVIL}]},
    }
    with local(client):
        answered = await play(client, state=EVIL, questions=json.dumps(questions))
        refused = await play(
            client, state=EVIL, questions=json.dumps({EVIL: {"type": EVIL}}), model=EVIL
        )
        form = await play(
            client, how="form", do="add", name_0=EVIL, instructions_0=EVIL, labels_0=EVIL
        )

    for page in (answered, refused, form):
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "</textarea><" not in page.text.replace("</textarea>\n", "")
        assert "49" not in re.findall(r"\{?\{? ?(49) ?\}?\}?&", page.text)
    assert "Answers 200" in text(answered)


async def test_a_key_that_may_not_ask_so_much_is_told(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    made = bearer(settings, "root", scopes=["admin"], rpm=1)
    questions = '{"q": {"type": "noul", "instructions": "?"}}'
    with gateway(settings) as client:
        await log_in(client, made["authorization"].removeprefix("Bearer "))
        first = await play(client, questions=questions)
        second = await play(client, questions=questions)

    assert "Answers 200" in text(first)
    assert "Refused 429" in text(second)
    assert "may use 1 requests a minute" in text(second)


async def test_a_form_as_long_as_a_request_may_be_is_read(gateway: Gateway) -> None:
    settings = settings_of()
    questions = '{"q": {"type": "noul", "instructions": "?"}}'
    with gateway(settings) as client, local(client):
        long = await play(client, state="x" * 3_000_000, questions=questions)
        too_long = await play(
            client, state="x" * (settings.limits.max_body_bytes + 1), questions=questions
        )

    assert "Answers 200" in text(long)
    assert too_long.status_code == 413


async def test_models_that_are_not_loaded_yet_are_a_refusal(gateway: Gateway) -> None:
    with gateway(loaded=False) as client, local(client):
        response = await play(client, questions='{"q": {"type": "noul", "instructions": "?"}}')

    assert response.status_code == 503
    assert "still loading" in text(response)


@given(st.lists(st.tuples(*[st.text(max_size=8)] * 3), max_size=4))
def test_any_form_is_a_body_or_a_refusal(rows: list[tuple[str, str, str]]) -> None:
    fields = {"how": ["form"], "state": ["s"]}
    for n, (name, instructions, labels) in enumerate(rows):
        fields |= {f"name_{n}": [name], f"instructions_{n}": [instructions]}
        fields |= {f"labels_{n}": [labels], f"kind_{n}": [name]}

    form = Form(fields)
    names = [name for name, *rest in rows if name or rest[0] or rest[1].strip()]

    if len(set(names)) < len(names):
        with pytest.raises(Refusal, match="Two questions"):
            body_of(form)
        return
    with contextlib.suppress(Refusal):  # two options of one name
        assert list(body_of(form)["questions"]) == names
    assert len(rows_of(form)) == len(rows)


def test_yes_and_no_become_the_outcomes_of_the_wire() -> None:
    form = Form({"name_0": ["q"], "kind_0": ["noul"], "labels_0": ["yes: money\nno: none"]})

    assert questions_of(rows_of(form)) == {
        "q": {"type": "noul", "criteria": {"true": "money", "false": "none"}}
    }
