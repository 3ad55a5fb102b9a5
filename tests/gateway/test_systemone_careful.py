"""Large requests are read as small ones are, and cost no more when much is wrong with them."""

import json
from typing import Any, get_type_hints
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.dialects import systemone_careful
from gateway.dialects.systemone import AskLimits, decode, encode_problem
from gateway.dialects.systemone_faults import found_by
from gateway.dialects.systemone_schema import ASK, Ask
from gateway.dialects.systemone_text import TextLimits
from gateway.errors import Refusal
from tests.wire.strategies import ASKS, almost

LIMITS = AskLimits(
    max_values=100_000,
    max_questions=255,
    max_id_chars=1024,
    max_option_chars=4096,
    max_assets=16,
    text=TextLimits(max_chars=8_388_608, max_depth=64),
)


def _told(body: bytes) -> Any:
    """The inquiry, or what the body is refused with; faults in any order."""
    try:
        return decode(body, None, LIMITS)
    except Refusal as error:
        detail = json.loads(encode_problem(error.problem))["detail"]
        return sorted(map(str, detail)) if isinstance(detail, list) else detail


def _as_large(body: bytes) -> Any:
    """The same, looked at as if it were large."""
    with (
        mock.patch("gateway.dialects.systemone._FEW_BYTES", -1),
        mock.patch.object(systemone_careful, "_MUCH", -1),
    ):
        return _told(body)


@settings(max_examples=300, deadline=None)
@given(body=ASKS | almost() | st.recursive(st.none() | st.text(), st.lists, max_leaves=3))
def test_a_large_request_is_read_as_a_small_one(body: Any) -> None:
    sent = json.dumps(body).encode()

    assert _as_large(sent) == _told(sent)


@settings(max_examples=300, deadline=None)
@given(body=ASKS | almost() | st.recursive(st.none() | st.text(), st.lists, max_leaves=3))
def test_haste_finds_what_patience_finds(body: Any) -> None:
    sent = json.dumps(body).encode()
    try:
        expected = ASK.validate_json(sent)
    except ValidationError:
        expected = None

    assert systemone_careful.hasty_ask(sent, []) == expected


def test_haste_ends_at_the_first_fault_however_many_there_are() -> None:
    wrong = {"type": "choice", "criteria": {f"option {i}": i for i in range(200)}}
    body = json.dumps({"state": "", "questions": {f"q{i}": wrong for i in range(250)}}).encode()

    with pytest.raises(ValidationError) as refused:
        systemone_careful._HASTY.validate_json(body)

    assert refused.value.error_count() == 3  # the three shapes of one text


@pytest.mark.parametrize(
    ("state", "instructions", "structures"),
    [("", "?", 0), ("", ["?"], 1), ({}, "?", 1), ([{}], {"a": {}}, 2)],
)
def test_texts_with_a_structure_are_noted(state: Any, instructions: Any, structures: int) -> None:
    question = {"type": "noul", "instructions": instructions}
    noted: list[object] = []

    systemone_careful.hasty_ask(
        json.dumps({"state": state, "questions": {"q": question}}).encode(), noted
    )

    assert len(noted) == structures


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1e999",
        b"5",
        b'{"state": NaN, "questions": {"q": {"type": "noul", "instructions": [1e999]}}}',
        b'{"state": 5, "questions": [], "assets": {}, "x_lang": 1, "model": 2}',
        b'{"state": "", "questions": {}, "assets": {"a": 1, "b": {"part": 5}}}',
        b'{"state": "", "questions": {"q": {"type": "choice", "criteria": []}}}',
        b'{"state": "", "questions": {"q": 1, "p": {"type": "box"}, "r": {"type": 5}, "s": {}}}',
    ],
)
def test_a_large_request_is_refused_as_a_small_one(body: bytes) -> None:
    assert _as_large(body) == _told(body)


@pytest.mark.parametrize("options", [{}, {"sure": None}], ids=["all wrong", "one right"])
def test_of_many_wrong_options_only_some_are_found(options: dict[str, Any]) -> None:
    wrong = options | {f"option {i}": i for i in range(50_000)}
    body = {"state": "", "questions": {"q" * 1000: {"type": "choice", "criteria": wrong}}}
    found = mock.Mock(side_effect=found_by)

    with mock.patch.object(systemone_careful, "found_by", found), pytest.raises(Refusal) as refused:
        decode(json.dumps(body).encode(), None, LIMITS)

    faults = refused.value.problem.faults
    assert found.call_count == 1
    assert [fault.type for fault in faults[:2]] == ["text_type"] * 2
    assert len(faults) == 101
    assert faults[-1].msg.startswith("And at least ")


def test_of_many_wrong_questions_only_some_are_found() -> None:
    wrong = {"type": "choice", "criteria": {f"option {i}": i for i in range(200)}}
    body = {"state": "", "questions": {f"q{i}": wrong for i in range(250)}}
    found = mock.Mock(side_effect=found_by)

    with mock.patch.object(systemone_careful, "found_by", found), pytest.raises(Refusal) as refused:
        decode(json.dumps(body).encode(), None, LIMITS)

    assert found.call_count == 1
    assert refused.value.problem.faults[-1].msg == "And at least 100 more faults"


def test_where_all_is_looked_at_all_is_counted() -> None:
    wrong = {"type": "choice", "criteria": {f"option {i}": i for i in range(150)}}

    found = _raised(json.dumps({"state": "", "questions": {"q": wrong}}).encode())

    assert found[-1]["msg"] == "And 50 more faults"


def test_the_frame_of_a_request_has_all_that_a_request_has() -> None:
    frame, whole = (
        get_type_hints(one, include_extras=True) for one in (systemone_careful._Frame, Ask)
    )

    assert frame.keys() == whole.keys()
    parts = systemone_careful._PARTS.keys()
    assert [name for name in whole if frame[name] != whole[name]] == sorted(parts, reverse=True)


def test_a_long_id_is_refused_before_what_it_asks_is_looked_at() -> None:
    wrong = {"type": "choice", "criteria": {f"option {i}": i for i in range(9000)}}
    body = json.dumps({"state": "", "questions": {"i" * 60_000: wrong}}).encode()

    assert [fault["type"] for fault in _raised(body)] == ["id_too_long"]


def _raised(body: bytes) -> Any:
    with pytest.raises(Refusal) as refused:
        decode(body, None, LIMITS)
    return json.loads(encode_problem(refused.value.problem))["detail"]
