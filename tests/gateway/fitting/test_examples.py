"""Rows sorted by question, and splits in which equal texts are never on two sides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Choice, Noul, Question, Score
from gateway.fitting.examples import by_question, folds, held_out, label_names
from gateway.labelled import Row

SPAM = Noul("Is it spam?")
TOPIC = Choice({"a": None, "b": None})

TEXTS = st.lists(st.text(max_size=5), min_size=1, max_size=60)


def row(state: str, label: int, question: Question = SPAM, name: str = "q") -> Row:
    return Row(state, {name: question}, {name: label}, "file:1")


def test_questions_are_told_apart_by_what_they_ask_not_by_their_ids() -> None:
    rows = [row("x", 0, name="one"), row("y", 1, name="two"), row("x", 1, TOPIC, name="one")]

    found = list(by_question(rows).values())

    assert [(one.name, one.texts, one.labels) for one in found] == [
        ("one", ["x", "y"], [0, 1]),
        ("one", ["x"], [1]),
    ]


def test_a_row_that_says_the_same_again_is_left_out_and_counted() -> None:
    (found,) = by_question([row("x", 0), row("x", 0), row("x", 1)]).values()

    assert (found.texts, found.labels) == (["x", "x"], [0, 1])
    assert found.repeated == 1
    assert found.contradictions == 1


def test_states_that_read_the_same_are_the_same() -> None:
    rows = [
        Row({"subject": "hi"}, {"q": SPAM}, {"q": 0}, "file:1"),
        Row("subject: hi", {"q": SPAM}, {"q": 0}, "file:2"),
    ]

    (found,) = by_question(rows).values()

    assert found.texts == ["subject: hi"]


def test_a_question_without_a_label_is_left_out() -> None:
    rows = [Row("x", {"q": SPAM, "t": TOPIC}, {"t": 1}, "file:1")]

    assert [one.question for one in by_question(rows).values()] == [TOPIC]


@given(texts=TEXTS, share=st.floats(0, 1))
def test_equal_texts_are_kept_back_together(texts: list[str], share: float) -> None:
    kept = held_out([*texts, *reversed(texts)], share)

    assert kept == list(reversed(kept))


def test_about_the_share_is_kept_back_and_more_rows_move_none() -> None:
    texts = [f"text {n}" for n in range(2000)]

    kept = held_out(texts, 0.3)

    assert 0.27 < sum(kept) / len(kept) < 0.33
    assert held_out(texts[:700], 0.3) == kept[:700]


@given(texts=TEXTS)
def test_equal_texts_share_a_fold(texts: list[str]) -> None:
    dealt = folds(texts, [0] * len(texts), 5)

    assert all(dealt[texts.index(text)] == fold for text, fold in zip(texts, dealt, strict=True))


def test_every_label_is_spread_evenly_over_the_folds() -> None:
    texts = [f"text {n}" for n in range(330)]
    labels = [n % 33 for n in range(330)]

    dealt = folds(texts, labels, 5)

    assert set(Counter(zip(labels, dealt, strict=True)).values()) == {2}
    assert set(Counter(dealt).values()) == {66}


def test_labels_are_called_what_a_person_calls_them() -> None:
    assert label_names(SPAM) == ["true", "false"]
    assert label_names(TOPIC) == ["a", "b"]
    assert label_names(Score(["low", "high"])) == ["0", "1"]
