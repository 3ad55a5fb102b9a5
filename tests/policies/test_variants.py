"""Variants ask the same: every label is found again, whatever is moved or renamed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Choice, Noul, Question, Score, label_count
from policies.variants import ESCAPE, TESTS, has_escape, samples, variants

NAMES = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=30, unique=True)
CHOICES = NAMES.map(lambda names: Choice({name: f"about {name}" for name in names}, "Which?"))
NOULS = st.builds(
    Noul, instructions=st.just("Urgent?"), true=st.none() | st.text(), false=st.none() | st.text()
)
SCORES = st.lists(st.text(), min_size=1, max_size=9).map(lambda levels: Score(levels, "How?"))
QUESTIONS: st.SearchStrategy[Question] = st.one_of(CHOICES, NOULS, SCORES)


@given(QUESTIONS)
def test_every_label_has_one_place_in_every_variant(question: Question) -> None:
    for one in variants("q0", question, {"q0": question, "other": Noul("x")}):
        assert len(one.places) == len(set(one.places)) == label_count(question)
        assert max(one.places) < label_count(one.question)
        assert one.name not in one.neighbours


@given(CHOICES)
def test_a_reordered_choice_has_its_options_where_it_says(question: Choice) -> None:
    names = list(question.options)
    orders = [one for one in variants("q0", question, {}) if one.test == "order"]

    for one in orders:
        assert isinstance(one.question, Choice)
        moved = list(one.question.options)
        assert [moved[place] for place in one.places] == names != moved
        assert one.question.options == question.options
    assert (
        len({one.places for one in orders})
        == len(orders)
        == min(len(names), 8) * (len(names) > 2) + (len(names) == 2)
    )


def test_each_option_of_a_small_choice_stands_at_each_place() -> None:
    question = Choice(dict.fromkeys("abcde"))
    turns = [one.places for one in variants("q", question, {}) if one.test == "order"][:-1]

    for label in range(5):
        assert {places[label] for places in turns} | {label} == set(range(5))


def test_a_yes_no_question_has_an_opposite() -> None:
    question = Noul("Is it urgent?", true="today", false="can wait")

    (made,) = [one for one in variants("q", question, {}) if one.test == "twin"]
    given_ = Noul("Can it wait?")
    (told,) = [one for one in variants("q", question, {}, given_) if one.test == "twin"]

    assert made.question == Noul(
        "Is the answer to this question no? Is it urgent?", true="can wait", false="today"
    )
    assert (told.question, told.places) == (given_, (1, 0))


@pytest.mark.parametrize(
    ("options", "escape"),
    [
        (["billing", "tech"], False),
        (["billing", "Other"], True),
        (["billing", "none of these"], True),
        (["billing", "another_topic"], False),
        (["rechnung", "sonstiges"], True),
        (["motherboard", "smothered"], False),
    ],
)
def test_a_way_out_is_told_by_its_name(options: list[str], escape: bool) -> None:
    question = Choice(dict.fromkeys(options))

    added = [one for one in variants("q", question, {}) if one.test == "escape"]

    assert has_escape(question) is escape
    assert bool(added) is not escape
    for one in added:
        assert isinstance(one.question, Choice)
        assert list(one.question.options) == [*options, ESCAPE]


@given(QUESTIONS)
def test_there_is_something_to_try_a_question_on(question: Question) -> None:
    states = samples(question)

    assert states[0] == ""
    assert len(states) <= 8
    assert all(states[1:])


def test_every_test_is_listed() -> None:
    questions: list[Question] = [Choice(dict.fromkeys("abc")), Noul("x")]
    made = {one.test for question in questions for one in variants("q0", question, {})}

    assert made == set(TESTS)
