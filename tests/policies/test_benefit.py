"""Fixed against broken: McNemar by its definition, verdicts, what a fix costs."""

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.benefit import Benefit, Escalated, benefit, mcnemar, sentence

ANSWERS = st.builds(
    Escalated,
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    truth=st.none() | st.integers(0, 3),
    nanos=st.none() | st.integers(0, 10**6),
)


def test_twelve_fixed_and_sixteen_broken_prove_nothing() -> None:
    """The published run on BANKING77: p = .57."""
    assert mcnemar(12, 16) == pytest.approx(0.572, abs=5e-4)
    assert mcnemar(16, 12) == mcnemar(12, 16)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_p_value_is_twice_the_tail_of_a_fair_coin(fixed: int, broken: int) -> None:
    n = fixed + broken
    tail = Fraction(sum(comb(n, k) for k in range(min(fixed, broken) + 1)), 2**n)

    assert mcnemar(fixed, broken) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-9)


@given(st.lists(ANSWERS, max_size=40))
def test_every_escalation_is_counted_once(questions: list[Escalated]) -> None:
    found = benefit(questions)

    assert found.escalated == len(questions)
    assert found.known == sum(one.truth is not None for one in questions)
    assert found.fixed + found.broken + found.unchanged == found.known
    assert found.changed == sum(one.before != one.after for one in questions)
    assert found.nanos == sum(one.nanos or 0 for one in questions)
    assert found.unpriced == sum(one.nanos is None for one in questions)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Benefit(100, 30, fixed=25, broken=2), "Escalating `intent` helps"),
        (Benefit(100, 30, fixed=2, broken=25), "harms"),
        (Benefit(100, 30, fixed=12, broken=16), "No evidence that escalating `intent` helps: 12"),
        (Benefit(100, 30), "the answer changed for 30 of 100"),
    ],
)
def test_a_sentence_says_what_is_proven_and_no_more(found: Benefit, words: str) -> None:
    assert words in sentence("`intent`", found)


def test_a_fix_costs_what_the_known_escalations_cost_for_each_net_fix() -> None:
    found = Benefit(200, 60, fixed=30, broken=10, both_right=50, both_wrong=10, nanos=2_000_000)

    assert found.nanos_per_fix == 2_000_000 / 2 / 20


@pytest.mark.parametrize(
    "found",
    [
        Benefit(10, 5, fixed=2, broken=2, nanos=9),
        Benefit(10, 5, nanos=9),
        Benefit(10, 5, fixed=4, broken=1, nanos=9, unpriced=1),
    ],
)
def test_a_fix_has_no_price_where_there_is_none(found: Benefit) -> None:
    assert found.nanos_per_fix is None
