"""The fitted engine: knows its questions word for word, and reads them by the state alone."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.contract import Asset, Broken, Choice, Inquiry, Noul, Question, Reason, Unreadable
from engines.fitted.engine import FittedEngine
from engines.fitted.heads import saved
from engines.minilm.embed import Embedder, Vector

from .knowing import drawn

SPAM = Noul("Is it spam?", "spam", "not spam")
TOPIC = Choice({"billing": "money", "login": None})


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FittedEngine]:
    folder = tmp_path_factory.mktemp("heads")
    for question in (SPAM, TOPIC):
        saved(drawn(question), folder)
    opened = FittedEngine(path=str(folder))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "asked",
    [
        Noul("Is it spam?"),
        Noul("Is it spam?", "spam", "not spam."),
        Choice({"login": None, "billing": "money"}),
        Choice({"billing": "money", "login": None}, ""),
        Choice({"billing": "money", "login": None, "other": None}),
    ],
)
def test_a_question_worded_or_ordered_otherwise_is_unknown(
    engine: FittedEngine, asked: Question
) -> None:
    with pytest.raises(Unreadable, match="was not fitted to 'q'") as refused:
        engine.prepare(Inquiry("a state", {"q": asked}))

    assert refused.value.reason is Reason.UNKNOWN_QUESTION
    assert refused.value.question == "q"


def test_every_unknown_question_is_named_at_once(engine: FittedEngine) -> None:
    questions: dict[str, Question] = {
        "spam": SPAM,
        "one": Noul("Is it rude?"),
        "topic": TOPIC,
        "two": Noul("Is it long?"),
    }

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("a state", questions))

    assert refused.value.question == "one"
    assert refused.value.of_each == dict.fromkeys(["one", "two"], Reason.UNKNOWN_QUESTION)
    assert list(refused.value.of_each) == ["one", "two"]


def test_unknown_wins_over_too_long(engine: FittedEngine) -> None:
    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("word " * 300, {"q": Noul("Is it rude?")}))

    assert refused.value.reason is Reason.UNKNOWN_QUESTION


def test_images_are_refused_before_anything(engine: FittedEngine) -> None:
    picture = {"<image:1>": Asset("image/png", b"")}

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("<image:1>", {"q": Noul("Is it rude?")}, picture))

    assert refused.value.reason is Reason.IMAGES


def test_a_reading_is_the_heads_product_with_the_states_vector(engine: FittedEngine) -> None:
    head = drawn(TOPIC)
    (piece,) = engine.prepare(Inquiry("my password is lost", {"q": TOPIC}))

    reading = engine.read([piece])[0]["q"]

    vector = engine._sentences.vector(piece.state)
    expected = head.weights.astype(float) @ vector + head.bias
    assert np.allclose(reading.log_weights, expected, atol=1e-5)
    assert reading.tokens == 6  # [CLS] my password is lost [SEP]
    assert reading.doubt is None
    assert all(math.isfinite(weight) for weight in reading.log_weights)


def test_the_state_is_embedded_once_for_all_questions(
    engine: FittedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    vector = Embedder.vector

    def counted(self: Embedder, ids: np.ndarray) -> Vector:
        runs.append(len(ids))
        return vector(self, ids)

    monkeypatch.setattr(Embedder, "vector", counted)
    pieces = engine.prepare(Inquiry("my password is lost", {"a": TOPIC, "b": SPAM, "c": TOPIC}))

    engine.read(pieces)

    assert runs == [6]


def test_a_head_with_other_labels_than_its_question_is_broken(tmp_path: Path) -> None:
    head = drawn(SPAM)
    three = drawn(Choice({"a": None, "b": None, "c": None}))
    saved(replace(three, fingerprint=head.fingerprint), tmp_path)
    engine = FittedEngine(path=str(tmp_path))

    with pytest.raises(Broken, match="another number of labels"):
        engine.prepare(Inquiry("a state", {"q": SPAM}))
    engine.close()


def test_a_closed_engine_is_broken(tmp_path: Path) -> None:
    saved(drawn(SPAM), tmp_path)
    engine = FittedEngine(path=str(tmp_path))
    pieces = engine.prepare(Inquiry("a state", {"q": SPAM}))
    engine.close()

    with pytest.raises(Broken, match="closed"):
        engine.read(pieces)


def test_the_facts_say_how_many_questions_it_knows(engine: FittedEngine) -> None:
    assert engine.facts.max_tokens == 256
    assert engine.facts.not_competent == frozenset()
    assert "2 questions" in engine.facts.notes
