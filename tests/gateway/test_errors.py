"""Every refusal has a status, and what is not our fault is never a 5xx."""

from typing import get_args

import pytest

from engines.contract import Broken, Busy, EngineError, Reason, Unreadable
from gateway.dialects.systemone import encode_problem
from gateway.errors import MAX_RETRY_AFTER_S, STATUS, Fault, Kind, Problem, invalid, problem

OURS = {"overloaded", "late", "not_ready", "ledger_down", "broken", "internal"}


def test_every_kind_has_a_status_and_only_our_own_faults_are_5xx() -> None:
    assert set(STATUS) == set(get_args(Kind))
    assert {kind for kind, status in STATUS.items() if status >= 500} == OURS


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_of_an_engine_becomes_a_4xx_with_the_reason(reason: Reason) -> None:
    found = problem(Unreadable("it does not fit", reason=reason, question="q", tokens=9))

    assert 400 <= found.status < 500
    assert found.details["reason"] == reason.value
    assert found.message == "It does not fit."


def test_every_engine_error_is_mapped() -> None:
    samples: dict[type[EngineError], EngineError] = {
        Unreadable: Unreadable("m", reason=Reason.LANGUAGE),
        Busy: Busy("m", retry_after_s=1.0),
        Broken: Broken("m"),
    }

    assert set(samples) == set(EngineError.__subclasses__())
    assert [problem(error).status for error in samples.values()] == [422, 529, 500]


def test_retry_hints_stay_below_what_the_sdk_gives_up_at() -> None:
    assert problem(Busy("m", retry_after_s=3600.0)).retry_after_s == MAX_RETRY_AFTER_S == 10.0


def test_an_unmapped_engine_error_is_internal_and_says_nothing() -> None:
    assert problem(EngineError("inside")) == Problem("internal", "Internal error.")


def test_faults_are_a_list_with_locations() -> None:
    refused = invalid(Fault("missing", ("body", "questions", "q", 1), "Field required"))

    assert encode_problem(refused.problem) == (
        b'{"detail":[{"type":"missing","loc":["body","questions","q",1],"msg":"Field required"}]}'
    )
