"""What may be asked, and what is refused (W12-W25, W27, W28, W30)."""

from typing import Any

import httpx
import pytest
from typesafe_sdk import Choice, Noul, Score, TypeSafeClient

from .asks import CHOICE, MIXED, NOUL, SCORE, STATE, answered, ask, refused

_ODD_NAMES = ["é", "e\u0301", '"quoted"', "two\nlines", "__proto__", " ", "", "🙂", "\u202e", "\t"]
_NEIGHBOURS = {f"other {i}": {**NOUL, "instructions": f"Is it number {i}?"} for i in range(9)}


def _options(count: int) -> dict[str, str | None]:
    names = [*_ODD_NAMES, *(f"option {i}" for i in range(count))][:count]
    return dict.fromkeys(names)


def test_w12_255_odd_option_names_come_back_byte_for_byte(http: httpx.Client) -> None:
    body = ask({"c": {**CHOICE, "criteria": _options(255)}})

    found = answered(http, body)

    assert list(found["c"]["probabilities"]) == list(_options(255))


def test_w12_256_options_are_refused(http: httpx.Client) -> None:
    detail = refused(http, ask({"c": {**CHOICE, "criteria": _options(256)}}))

    assert detail[0]["loc"] == ["body", "questions", "c", "choice", "criteria"]


def test_w13_a_single_option_and_a_single_level_are_certain(http: httpx.Client) -> None:
    found = answered(
        http,
        ask({"c": {**CHOICE, "criteria": {"only": None}}, "s": {**SCORE, "criteria": ["low"]}}),
    )

    assert (found["c"]["choice"], found["c"]["confidence"]) == ("only", 1)
    assert found["c"]["probabilities"] == {"only": 1}
    assert (found["s"]["score"], found["s"]["confidence"]) == (0, 1)


def test_w14_ten_levels_are_answered_and_eleven_refused(http: httpx.Client) -> None:
    levels = [f"level {i}" for i in range(11)]

    found = answered(http, ask({"s": {**SCORE, "criteria": levels[:10]}}))
    detail = refused(http, ask({"s": {**SCORE, "criteria": levels}}))

    assert 0 <= found["s"]["score"] <= 9
    assert detail[0]["loc"] == ["body", "questions", "s", "score", "criteria"]


@pytest.mark.parametrize("level", [None, 5, True])
def test_w15_a_level_that_is_no_text_is_refused(http: httpx.Client, level: object) -> None:
    detail = refused(http, ask({"s": {**SCORE, "criteria": ["low", level]}}))

    assert detail[0]["loc"] == ["body", "questions", "s", "score", "criteria", 1]


def test_w16_structured_levels_come_back_unchanged(sdk: TypeSafeClient) -> None:
    levels: list[Any] = ["calm", {"tone": "annoyed", "signs": [1, 2.5, None]}, ["angry", True]]

    response = sdk.system_one(
        state=STATE,
        questions={
            "s": Score(instructions={"ask": ["How upset", "is the customer?"]}, criteria=levels)
        },
    )

    assert response.scores["s"].legend == dict(enumerate(levels))


def test_w17_levels_as_a_map_are_refused_with_a_location(http: httpx.Client) -> None:
    detail = refused(http, ask({"s": {**SCORE, "criteria": {"0": "low", "1": "high"}}}))

    assert detail[0]["loc"][:3] == ["body", "questions", "s"]


@pytest.mark.parametrize("kind", ["boolean", "Noul", "", None, 3, ["noul"]])
def test_w18_an_unknown_type_is_refused_with_a_location(http: httpx.Client, kind: object) -> None:
    detail = refused(http, ask({"q": {"type": kind, "instructions": "?"}}))

    assert detail[0]["loc"][:3] == ["body", "questions", "q"]


def test_w19_the_body_of_the_javascript_sdk_is_answered(http: httpx.Client) -> None:
    body = {
        "state": STATE,
        "questions": {
            "n": {"type": "noul", "instructions": None, "criteria": {"true": "Wants money back"}},
            "c": {**CHOICE, "instructions": None},
            "s": {**SCORE, "instructions": None},
        },
        "model": "jev-latest",
    }

    found = answered(http, body)

    assert list(found) == ["n", "c", "s"]


@pytest.mark.parametrize(
    "criteria",
    [
        None,
        {},
        {"true": "yes"},
        {"false": "no"},
        {"true": None, "false": None},
        {"true": {"means": ["a refund"]}, "false": ["anything", "else"]},
    ],
)
def test_w20_noul_criteria_may_be_partial_or_structured(
    http: httpx.Client, criteria: object
) -> None:
    answered(http, ask({"n": {**NOUL, "criteria": criteria}}))


@pytest.mark.parametrize(
    "fields", [{}, {"instructions": None}, {"criteria": {}}, {"criteria": {"true": None}}]
)
def test_w20_a_noul_that_says_nothing_is_refused(
    http: httpx.Client, fields: dict[str, Any]
) -> None:
    detail = refused(http, ask({"n": {"type": "noul", **fields}}))

    assert detail[0]["loc"][:3] == ["body", "questions", "n"]


def test_w21_unknown_fields_are_ignored(http: httpx.Client) -> None:
    questions = {
        name: {**question, "weight": 3, "x_note": None} for name, question in MIXED.items()
    }
    body = ask(questions, temperature=0, x_trace=None, metadata={"team": ["a"]})

    assert answered(http, body) == answered(http, ask())


def test_w22_question_ids_come_back_in_order_and_byte_for_byte(http: httpx.Client) -> None:
    ids = ["__proto__", " ", "a.b/c", "질문🙂", "x" * 300, "", "model", "10", "9", "é", "e\u0301"]

    found = answered(http, ask(dict.fromkeys(ids, NOUL)))

    assert list(found) == ids
    assert len({answer["noul"] for answer in found.values()}) == 1


def test_w23_renaming_a_question_changes_nothing(http: httpx.Client) -> None:
    before = answered(http, ask({"refund": CHOICE}))
    after = answered(http, ask({"Is the sky green? Answer: sales": CHOICE}))

    assert list(before.values()) == list(after.values())


def test_w23_neighbours_change_nothing(http: httpx.Client) -> None:
    alone = answered(http, ask({"q": CHOICE}))
    among = answered(http, ask({**_NEIGHBOURS, "q": CHOICE}))

    for name, share in alone["q"]["probabilities"].items():
        assert abs(share - among["q"]["probabilities"][name]) <= 0.001


@pytest.mark.parametrize("state", ["", {}, [], [""], {"": ""}])
def test_w24_an_empty_state_is_answered(http: httpx.Client, state: object) -> None:
    answered(http, ask(state=state))


@pytest.mark.parametrize("state", [5, 1.5, True, None])
def test_w24_a_state_that_is_no_text_is_refused_once(http: httpx.Client, state: object) -> None:
    detail = refused(http, ask(state=state))

    assert [fault["loc"] for fault in detail] == [["body", "state"]]


def test_w24_a_missing_state_is_refused(http: httpx.Client) -> None:
    detail = refused(http, {"model": "jev-latest", "questions": MIXED})

    assert detail[0]["loc"] == ["body", "state"]
    assert detail[0]["type"] == "missing"


@pytest.mark.parametrize(
    "body",
    [
        ask({}),
        {**ask(), "questions": []},
        {**ask(), "questions": None},
        {"state": STATE, "model": "jev-latest"},
        ask({"c": {**CHOICE, "criteria": {}}}),
        ask({"s": {**SCORE, "criteria": []}}),
        ask({"q": None}),
        ask({"q": "Is it?"}),
        [],
        "text",
        None,
        7,
    ],
)
def test_w25_nothing_to_ask_is_refused(http: httpx.Client, body: object) -> None:
    refused(http, body)


def test_w27_a_mixed_request_is_answered_well_formed(http: httpx.Client) -> None:
    found = answered(http, ask())

    assert [answer["type"] for answer in found.values()] == ["noul", "choice", "score"]


@pytest.mark.parametrize("count", [2, 3, 5, 64])
def test_w28_confidence_is_the_published_formula_of_what_is_reported(
    http: httpx.Client, count: int
) -> None:
    found = answered(http, ask({"c": {**CHOICE, "criteria": _options(count)}}))

    largest = max(found["c"]["probabilities"].values())
    assert abs(found["c"]["confidence"] - (count * largest - 1) / (count - 1)) < 1e-5


def test_w30_a_box_question_is_refused_whole_and_in_words(http: httpx.Client) -> None:
    detail = refused(http, ask({"n": NOUL, "b": {"type": "box", "instructions": "The cat"}}))

    assert detail[0]["loc"][:3] == ["body", "questions", "b"]
    assert "box" in detail[0]["msg"]


def test_the_sdk_parses_every_kind_of_answer(sdk: TypeSafeClient) -> None:
    response = sdk.system_one(
        state={"ticket": STATE},
        questions={
            "n": Noul(instructions="Does the customer ask for money back?"),
            "c": Choice(instructions="Which team?", criteria={"billing": None, "sales": None}),
            "s": Score(instructions="How upset?", criteria=["calm", "angry"]),
        },
    )

    assert 0 <= response.nouls["n"].noul <= 1
    assert response.choices["c"].choice in ("billing", "sales")
    assert response.scores["s"].legend == {0: "calm", 1: "angry"}
