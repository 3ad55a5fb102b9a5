"""The engine laws, for every engine. A new engine joins by one line in ENGINES."""

import gc
import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.contract import (
    Asset,
    Choice,
    Engine,
    Inquiry,
    Noul,
    Question,
    Reading,
    Reason,
    Score,
    Unreadable,
    kind_of,
    label_count,
)
from engines.fitted.engine import FittedEngine
from engines.registry import engine_class

from .clef.golden import tiny_engine as tiny_clef
from .fitted.knowing import KNOWN, knowing_engine
from .laya.golden import tiny_engine

ENGINES: dict[str, Callable[[], Engine[Any]]] = {
    **{kind: engine_class(kind) for kind in ("scripted", "starter")},
    "fitted": knowing_engine,
    "laya": lambda: tiny_engine("fp32"),
    "laya int8": lambda: tiny_engine("int8"),
    "clef": tiny_clef,
}
"""Kind → how to open it, with all the laws need at hand."""

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
JSON = st.recursive(
    TEXT | st.integers(-999, 999) | st.none(), lambda inner: st.lists(inner, max_size=3)
)
WRITTEN = TEXT | st.dictionaries(TEXT, JSON, max_size=3) | st.lists(JSON, max_size=3)
QUESTIONS = st.one_of(
    st.builds(Noul, WRITTEN, st.none() | TEXT, st.none() | TEXT),
    st.builds(Choice, st.dictionaries(TEXT, st.none() | TEXT, min_size=1, max_size=6), WRITTEN),
    st.builds(Score, st.lists(TEXT, min_size=1, max_size=6), st.none() | TEXT),
)
LAW = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=ENGINES, scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine[Any]]:
    opened = ENGINES[request.param]()
    yield opened
    opened.close()


def questions_for(engine: Engine[Any]) -> st.SearchStrategy[Question]:
    """Any question; of an engine that knows only some, those."""
    return st.sampled_from(KNOWN) if isinstance(engine, FittedEngine) else QUESTIONS


def inquiries_for(engine: Engine[Any]) -> st.SearchStrategy[Inquiry]:
    asked = st.dictionaries(TEXT, questions_for(engine), min_size=2, max_size=3)
    return st.builds(Inquiry, WRITTEN, asked)


def read(engine: Engine[Any], inquiry: Inquiry) -> dict[str, Reading]:
    """Every question's reading, one piece at a time."""
    return {
        name: reading
        for piece in engine.prepare(inquiry)
        for name, reading in engine.read([piece])[0].items()
    }


def one(engine: Engine[Any], state: Any, question: Question, name: str = "q") -> Reading:
    return read(engine, Inquiry(state, {name: question}))[name]


def same(a: Reading, b: Reading) -> bool:
    return a.tokens == b.tokens and all(
        math.isclose(x, y, abs_tol=1e-4) for x, y in zip(a.log_weights, b.log_weights, strict=True)
    )


@LAW
@given(data=st.data())
def test_every_question_gets_one_finite_weight_per_label(
    engine: Engine[Any], data: st.DataObject
) -> None:
    inquiry = data.draw(inquiries_for(engine))

    readings = read(engine, inquiry)

    assert readings.keys() == inquiry.questions.keys()
    for name, reading in readings.items():
        assert len(reading.log_weights) == label_count(inquiry.questions[name])
        assert all(math.isfinite(weight) for weight in reading.log_weights)
        assert reading.tokens >= 0


@LAW
@given(data=st.data())
def test_a_question_reads_the_same_alone_and_in_company(
    engine: Engine[Any], data: st.DataObject
) -> None:
    inquiry = data.draw(inquiries_for(engine))

    together = read(engine, inquiry)

    for name, question in inquiry.questions.items():
        assert same(one(engine, inquiry.state, question, name), together[name])


@LAW
@given(state=WRITTEN, data=st.data(), name=TEXT)
def test_a_questions_name_means_nothing(
    engine: Engine[Any], state: Any, data: st.DataObject, name: str
) -> None:
    question = data.draw(questions_for(engine))

    assert same(one(engine, state, question, name), one(engine, state, question, "other"))


@LAW
@given(data=st.data())
def test_sharing_a_batch_changes_nothing(engine: Engine[Any], data: st.DataObject) -> None:
    inquiry = data.draw(inquiries_for(engine))
    alone = read(engine, inquiry)
    pieces = engine.prepare(inquiry)

    batched = engine.read([*pieces, *reversed(pieces)])

    for readings in batched:
        assert all(same(reading, alone[name]) for name, reading in readings.items())


@LAW
@given(state=WRITTEN, data=st.data())
def test_reading_twice_gives_the_same_bits(
    engine: Engine[Any], state: Any, data: st.DataObject
) -> None:
    question = data.draw(questions_for(engine))

    assert one(engine, state, question) == one(engine, state, question)


def test_a_state_that_is_too_long_is_unreadable_with_both_counts(engine: Engine[Any]) -> None:
    max_tokens = engine.facts.max_tokens
    assert max_tokens is not None

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("word " * (max_tokens + 10), {"q": Noul("Is it?")}))

    assert refused.value.reason is Reason.TOO_LONG
    assert refused.value.max_tokens == max_tokens
    assert refused.value.tokens is not None
    assert refused.value.tokens > max_tokens
    assert str(max_tokens) in str(refused.value)
    assert str(refused.value.tokens) in str(refused.value)


def test_every_question_that_cannot_be_read_is_named_at_once(engine: Engine[Any]) -> None:
    long = "and another word " * 3000
    questions: dict[str, Question] = {
        "fine": Noul("Is it?"),
        "long": Noul(long),
        "longer": Choice({"a": None, "b": None}, long),
        "fine too": Choice({"a": None, "b": None}, "Which?"),
    }

    try:
        engine.prepare(Inquiry("a state", questions))
    except Unreadable as error:
        refused = error.of_each
    else:
        pytest.skip("this engine reads them all")

    assert set(refused) == {"long", "longer"}
    assert set(refused.values()) == {Reason.INSTRUCTIONS_CUT}
    rest = {name: asked for name, asked in questions.items() if name not in refused}
    assert set(read(engine, Inquiry("a state", rest))) == set(rest)


def test_a_refusal_is_freed_as_soon_as_nobody_has_it(engine: Engine[Any]) -> None:
    long = "and another word " * 30_000
    unreadable = [
        Inquiry(long, {"one": Noul("Is it?")}),
        Inquiry("a state", {"one": Noul("Is it?"), "two": Noul(long), "three": Noul(long)}),
    ]
    gc.disable()
    try:
        gone = [_refusal(engine, inquiry) for inquiry in unreadable]
    finally:
        gc.enable()

    assert any(gone), "this engine reads them all"
    assert [one for one in gone if one is not None and one() is not None] == []


def _refusal(engine: Engine[Any], inquiry: Inquiry) -> "weakref.ref[Unreadable] | None":
    try:
        engine.prepare(inquiry)
    except Unreadable as error:
        return weakref.ref(error)
    return None


def test_a_change_at_the_very_end_of_a_long_state_is_seen(engine: Engine[Any]) -> None:
    question = Choice({"refund": None, "password": None, "weather": None}, "What is it about?")
    filler = "the customer writes about many things and goes on and on " * 8

    first = one(engine, filler + "I want a refund of my money", question)
    second = one(engine, filler + "I forgot my password", question)

    assert first.log_weights != second.log_weights


def test_images_that_cannot_be_seen_are_unreadable(engine: Engine[Any]) -> None:
    picture = {"<image:1>": Asset("image/png", b"\x89PNG\r\n\x1a\n")}

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("look: <image:1>", {"q": Noul("Is it a cat?")}, picture))

    assert refused.value.reason is Reason.IMAGES
    assert "image" in str(refused.value)


def test_a_kind_the_engine_is_not_competent_for_says_so(engine: Engine[Any]) -> None:
    questions: dict[str, Question] = {
        "noul": Noul("Is it urgent?"),
        "choice": Choice({"a": "this", "b": "that"}, "Which?"),
        "score": Score(["low", "high"], "How much?"),
    }

    readings = read(engine, Inquiry("a short state", questions))

    doubted = {kind_of(questions[name]) for name, r in readings.items() if r.doubt}
    assert doubted == engine.facts.not_competent
