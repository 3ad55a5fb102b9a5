"""Drift of a log: what has changed is told by engine and cell, what has not is not."""

import random
from typing import Any

from gateway.drifting import drifted
from gateway.ledger.decisions import Glance, Logged
from tests.gateway.ledger.decided import decided

RNG = random.Random(2)


def sample(count: int, sharp: float, **changes: Any) -> list[Logged]:
    """Decisions of a small engine that is so sure, with a floor of 0.8."""
    rows = []
    for _ in range(count):
        p = RNG.betavariate(sharp, 2)
        up = p < 0.8
        rows.append(
            decided(looks=(Glance("small", 10, p, (0.5, 0.5)),), tier=2 if up else 1, **changes)
        )
    return rows


def test_the_same_traffic_is_stable() -> None:
    (found,) = drifted(sample(800, 8), sample(400, 8), "cell")

    assert (found.model, found.engine, found.what) == ("cascade", "small", "choice:2")
    assert (found.before, found.now) == (800, 400)
    assert found.findings == []
    assert not found.changed


def test_less_sure_answers_and_more_escalations_are_told() -> None:
    (found,) = drifted(sample(800, 12), sample(400, 4), "cell")

    assert found.changed
    assert found.escalated_now / found.now > found.escalated_before / found.before
    assert [clause.split(" has")[0] for clause in found.findings] == [
        "the likelihood",
        "the escalation share",
    ]


def test_cells_and_questions_are_looked_at_apart() -> None:
    before = sample(300, 8) + sample(300, 8, labels=7, fingerprint="e" * 16)
    now = sample(300, 8) + sample(300, 2, labels=7, fingerprint="e" * 16)

    by_cell = {one.what: one.changed for one in drifted(before, now, "cell")}
    by_question = {one.what: one.changed for one in drifted(before, now, "question")}

    assert by_cell == {"choice:2": False, "choice:6-10": True}
    assert by_question == {"f" * 16: False, "e" * 16: True}


def test_what_is_new_or_gone_is_listed_and_not_judged() -> None:
    found = drifted(sample(200, 8), sample(200, 8, model="other"), "cell")

    assert [(one.model, one.before, one.now) for one in found] == [
        ("cascade", 200, 0),
        ("other", 0, 200),
    ]
    assert {one.likelihood.verdict for one in found} == {"too_few"}


def test_what_no_engine_read_is_left_out() -> None:
    assert drifted([decided(looks=())], [], "cell") == []
