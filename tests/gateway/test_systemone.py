"""The System One dialect: what it reads, what it refuses and where, what it writes."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.contract import Choice, Noul, Score
from gateway.decision import Decision, Step
from gateway.dialects.systemone import AskLimits, decode, encode, encode_problem
from gateway.dialects.systemone_text import TextLimits
from gateway.errors import Refusal
from policies.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer

LIMITS = AskLimits(
    max_values=6000,
    max_questions=3,
    max_id_chars=50,
    max_option_chars=20,
    max_assets=2,
    text=TextLimits(max_chars=100, max_depth=5),
)
NOUL = {"type": "noul", "instructions": "?"}
PNG = b"\x89PNG\r\n\x1a\n and the rest"


def asking(questions: Any = None, **fields: Any) -> bytes:
    return json.dumps({"state": "s", "questions": questions or {"q": NOUL}} | fields).encode()


def faults(body: bytes) -> list[tuple[str, list[Any]]]:
    """Type and location of everything that `body` is refused for."""
    with pytest.raises(Refusal) as refused:
        decode(body, None, LIMITS)
    assert refused.value.problem.status == 422
    detail = json.loads(encode_problem(refused.value.problem))["detail"]
    return [(fault["type"], fault["loc"]) for fault in detail]


def test_every_kind_of_question_is_read_as_it_was_written() -> None:
    body = asking(
        {
            "n": {"type": "noul", "instructions": ["a", 1], "criteria": {"true": "yes", "x": 1}},
            "c": {"type": "choice", "criteria": {"b": None, "a": {"k": 2**70}}},
            "s": {"type": "score", "instructions": None, "criteria": ["low", {"l": "high"}]},
        },
        model="m",
        extra=[1],
    )

    model, inquiry = decode(body, None, LIMITS)

    assert model == "m"
    assert inquiry.questions == {
        "n": Noul(["a", 1], "yes", None),
        "c": Choice({"b": None, "a": {"k": 2**70}}),
        "s": Score(["low", {"l": "high"}]),
    }
    choice = inquiry.questions["c"]
    assert isinstance(choice, Choice)
    assert list(choice.options) == ["b", "a"]


@pytest.mark.parametrize("state", ["", {}, [], "text", {"a": [None, True, 1.5]}])
def test_states(state: Any) -> None:
    assert decode(asking(state=state), None, LIMITS)[1].state == state


@pytest.mark.parametrize("criteria", [None, {}, {"true": "t"}, {"false": ["f"]}])
def test_a_noul_with_instructions_may_leave_outcomes_out(criteria: Any) -> None:
    decode(asking({"q": NOUL | {"criteria": criteria}}), None, LIMITS)


Q = ["body", "questions", "q"]


@pytest.mark.parametrize(
    ("question", "type_", "loc"),
    [
        ({"type": "noul"}, "missing", [*Q, "noul", "instructions"]),
        ({"type": "noul", "criteria": {}}, "missing", [*Q, "noul", "instructions"]),
        ({"type": "noul", "instructions": 5}, "text_type", [*Q, "noul", "instructions"]),
        ({"type": "choice"}, "missing", [*Q, "choice", "criteria"]),
        ({"type": "choice", "criteria": {}}, "too_short", [*Q, "choice", "criteria"]),
        (
            {"type": "choice", "criteria": {str(i): None for i in range(256)}},
            "too_long",
            [*Q, "choice", "criteria"],
        ),
        ({"type": "choice", "criteria": ["a"]}, "dict_type", [*Q, "choice", "criteria"]),
        (
            {"type": "choice", "criteria": {"a": 1}},
            "text_type",
            [*Q, "choice", "criteria", "a"],
        ),
        (
            {"type": "choice", "criteria": {"x" * 21: None}},
            "option_too_long",
            [*Q, "choice", "criteria"],
        ),
        ({"type": "score", "criteria": {"0": "a"}}, "list_type", [*Q, "score", "criteria"]),
        ({"type": "score", "criteria": []}, "too_short", [*Q, "score", "criteria"]),
        ({"type": "score", "criteria": ["a"] * 11}, "too_long", [*Q, "score", "criteria"]),
        ({"type": "score", "criteria": ["a", None]}, "text_type", [*Q, "score", "criteria", 1]),
        ({"type": "boolean"}, "union_tag_invalid", Q),
        ({}, "union_tag_not_found", Q),
        ([], "dict_type", Q),
        ({"type": "box"}, "box_unsupported", [*Q, "box", "type"]),
        (NOUL | {"instructions": [[[[[[1]]]]]]}, "too_deep", [*Q, "noul", "instructions"]),
        (NOUL | {"instructions": "x" * 101}, "string_too_long", [*Q, "noul", "instructions"]),
        (NOUL | {"instructions": ["x" * 101]}, "string_too_long", [*Q, "noul", "instructions"]),
    ],
)
def test_what_is_wrong_with_a_question_is_told_where_it_is(
    question: Any, type_: str, loc: list[Any]
) -> None:
    assert faults(asking({"q": question})) == [(type_, loc)]


DEEP: Any = [[[[[[1]]]]]]


@pytest.mark.parametrize(
    ("question", "loc"),
    [
        (NOUL | {"instructions": DEEP}, ["noul", "instructions"]),
        (NOUL | {"criteria": {"true": "yes", "false": DEEP}}, ["noul", "criteria", "false"]),
        (
            {"type": "choice", "instructions": {"a": DEEP}, "criteria": {"a": None}},
            ["choice", "instructions"],
        ),
        ({"type": "choice", "criteria": {"a": "", "b": {"c": DEEP}}}, ["choice", "criteria", "b"]),
        (
            {"type": "score", "instructions": DEEP, "criteria": ["a"]},
            ["score", "instructions"],
        ),
        ({"type": "score", "criteria": ["a", DEEP]}, ["score", "criteria", 1]),
        ({"type": "box", "instructions": DEEP}, ["box", "instructions"]),
    ],
)
def test_structures_are_judged_wherever_a_text_may_stand(question: Any, loc: list[Any]) -> None:
    assert faults(asking({"p": NOUL, "q": question})) == [("too_deep", [*Q, *loc])]


def test_a_structure_in_the_state_is_judged_also_where_it_is_an_object() -> None:
    assert faults(asking(state={"a": DEEP})) == [("too_deep", ["body", "state"])]


@pytest.mark.parametrize(
    ("body", "type_", "loc"),
    [
        (b"", "json_invalid", ["body"]),
        (asking(state=[0] * 6000), "too_many_values", ["body"]),
        (b"{", "json_invalid", ["body"]),
        (b"[]", "dict_type", ["body"]),
        (b"{}", "missing", ["body", "state"]),
        (asking(state=5), "text_type", ["body", "state"]),
        (asking(state=None), "text_type", ["body", "state"]),
        (asking(state=True), "text_type", ["body", "state"]),
        (asking(model=5), "string_type", ["body", "model"]),
        (asking(assets={}), "too_short", ["body", "assets"]),
        (b'{"state":"s","questions":{}}', "too_short", ["body", "questions"]),
        (b'{"state":"s","questions":[]}', "dict_type", ["body", "questions"]),
        (asking({str(i): NOUL for i in range(4)}), "too_many_questions", ["body", "questions"]),
        (asking({"x" * 51: NOUL}), "id_too_long", ["body", "questions"]),
        (asking({"x": NOUL}).replace(b'"s"', b"[NaN]"), "finite_number", ["body", "state"]),
        (asking({"x": NOUL}).replace(b'"s"', b"[1e400]"), "finite_number", ["body", "state"]),
        (asking(state="\ud800"), "json_invalid", ["body"]),
        (b"\xef\xbb\xbf" + asking(), "json_invalid", ["body"]),
        (asking(state="S").replace(b'"S"', b'"\xff"'), "json_invalid", ["body"]),
        (asking(state="S").replace(b'"S"', b"[" * 5000 + b"]" * 5000), "json_invalid", ["body"]),
        (asking(state="S").replace(b'"S"', b"9" * 5000), "json_invalid", ["body"]),
    ],
)
def test_what_is_wrong_with_a_body_is_told_where_it_is(
    body: bytes, type_: str, loc: list[Any]
) -> None:
    assert (type_, loc) in faults(body)


def test_a_question_whose_id_is_a_type_name_keeps_its_location() -> None:
    assert faults(asking({"str": 5})) == [("dict_type", ["body", "questions", "str"])]


def test_many_faults_are_cut_and_counted() -> None:
    criteria = {f"option {i}": 5 for i in range(150)}

    found = faults(asking({"q": {"type": "choice", "criteria": criteria}}))

    assert len(found) == 101
    assert found[-1] == ("too_many_faults", ["body"])


def entry(**fields: Any) -> dict[str, Any]:
    return {"type": "image"} | fields


IN_PLACE = entry(format="png", data_base64=base64.b64encode(PNG).decode())


def test_assets_come_from_base64_or_from_parts() -> None:
    assets = {"<image:a>": entry(part="asset-0"), "b": IN_PLACE}
    body = asking(state="see <image:a> and b", assets=assets)

    _, inquiry = decode(body, {"asset-0": b"\xff\xd8\xff jpeg"}, LIMITS)

    assert [(ref, a.media_type) for ref, a in inquiry.assets.items()] == [
        ("<image:a>", "image/jpeg"),
        ("b", "image/png"),
    ]
    assert inquiry.assets["b"].content == PNG
    assert "PNG" not in repr(inquiry)


@pytest.mark.parametrize(
    ("assets", "parts"),
    [
        ({"a": entry(part="absent")}, {}),
        ({"a": entry(part="p"), "s": entry(part="p")}, {"p": PNG}),
        ({"a": entry(part="p")}, {"p": PNG, "stray": PNG}),
        ({"a": entry()}, {}),
        ({"a": entry(data_base64="%%%")}, {}),
        ({"a": entry(data_base64=base64.b64encode(b"GIF89a").decode())}, {}),
        ({"nowhere": IN_PLACE}, {}),
        ({" ": IN_PLACE}, {}),
        ({"a" * 1025: IN_PLACE}, {}),
        ({"s": IN_PLACE, "ss": IN_PLACE, "sss": IN_PLACE}, {}),
        (None, {"stray": PNG}),
    ],
)
def test_assets_that_do_not_fit_are_400(assets: Any, parts: dict[str, bytes]) -> None:
    fields = {} if assets is None else {"assets": assets}
    with pytest.raises(Refusal) as refused:
        decode(asking(state="a sss", **fields), parts, LIMITS)

    assert refused.value.problem.status == 400


def test_an_answer_is_written_in_the_hosted_apis_order_of_keys() -> None:
    answers: dict[str, Answer] = {
        "c": ChoiceAnswer("b", 0.5, {"b": 0.75, "a": 0.25}),
        "n": NoulAnswer(0.25, "not_competent"),
        "s": ScoreAnswer(0.5, 0.1, (0.5, 0.5), ("low", {"l": 2**70})),
    }

    written = encode(Decision("m", answers, (Step("e", 7, 0.1), Step("f", 5, 0.1))))

    assert written.replace(b" ", b"") == (
        b'{"model":"m","answers":{'
        b'"c":{"type":"choice","choice":"b","confidence":0.5,"probabilities":{"b":0.75,"a":0.25}},'
        b'"n":{"type":"noul","noul":0.25,"x_reason":"not_competent"},'
        b'"s":{"type":"score","score":0.5,"confidence":0.1,"legend":{"0":"low","1":{"l":'
        + str(2**70).encode()
        + b'}},"probabilities":{"0":0.5,"1":0.5}}},'
        b'"usage":{"input_tokens":12,"output_tokens":0},'
        b'"x_usage":{"e":{"input_tokens":7},"f":{"input_tokens":5}}}'
    )


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["state", "questions", "type", "criteria", "noul", "assets", "q"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(ANY_JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        decode(json.dumps(value).encode("utf-8", "surrogatepass"), None, LIMITS)
    except Refusal as refused:
        status = refused.problem.status
    else:
        status = 200
    assert 200 <= status < 500


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises(Refusal):
        decode(body, None, LIMITS)
