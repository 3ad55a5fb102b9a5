"""Thresholds in another formula's words: no answer outside the interval, both ends reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.confidence import Formula
from policies.translate import confidence, matched, translated

FORMULAS: tuple[Formula, ...] = ("jev", "entropy", "top", "margin")


def shares_of(weights: list[float]) -> list[float]:
    total = sum(weights)
    return [w / total for w in weights]


SHARES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8).filter(any).map(shares_of)


@given(SHARES, st.sampled_from(FORMULAS), st.sampled_from(FORMULAS))
def test_every_answer_lies_in_the_interval(
    shares: list[float], source: Formula, target: Formula
) -> None:
    found = translated(confidence(shares, source), source, target, len(shares))

    assert found.low - 1e-6 <= confidence(shares, target) <= found.high + 1e-6


@given(st.floats(0.0, 1.0), st.sampled_from(FORMULAS), st.sampled_from(FORMULAS))
def test_with_two_options_the_translation_is_exact_and_returns(
    top: float, source: Formula, target: Formula
) -> None:
    threshold = confidence([max(top, 1 - top), min(top, 1 - top)], source)
    there = translated(threshold, source, target, 2)
    back = translated(there.low, target, source, 2)

    assert there.high == pytest.approx(there.low, abs=1e-6)
    assert back.low == pytest.approx(threshold, abs=1e-5)


@pytest.mark.parametrize("n", [3, 5, 10, 255])
@pytest.mark.parametrize("threshold", [0.2, 0.55, 0.9])
def test_both_ends_of_entropy_are_reached(n: int, threshold: float) -> None:
    tops = translated(threshold, "entropy", "top", n)
    even = [tops.high, *[(1 - tops.high) / (n - 1)] * (n - 1)]
    whole = int(1 / tops.low)
    packed = [*[tops.low] * whole, 1 - whole * tops.low, *[0.0] * (n - whole - 1)]
    margins = translated(threshold, "entropy", "margin", n)

    assert confidence(even, "entropy") == pytest.approx(threshold, abs=1e-6)
    assert confidence(packed, "entropy") == pytest.approx(threshold, abs=1e-6)
    assert confidence(even, "margin") == pytest.approx(margins.high, abs=1e-6)


@pytest.mark.parametrize("margin", [0.0, 0.3, 0.8])
def test_both_ends_of_a_margin_are_reached(margin: float) -> None:
    n = 4
    tops = translated(margin, "margin", "top", n)
    even = [tops.low, *[(1 - tops.low) / (n - 1)] * (n - 1)]
    two = [tops.high, 1 - tops.high, 0.0, 0.0]
    entropies = translated(margin, "margin", "entropy", n)

    assert confidence(even, "margin") == pytest.approx(margin)
    assert confidence(two, "margin") == pytest.approx(margin)
    assert confidence(even, "entropy") == pytest.approx(entropies.low)
    assert confidence(two, "entropy") == pytest.approx(entropies.high)


def test_jev_and_top_are_the_same_line() -> None:
    found = translated(0.5, "jev", "top", 5)

    assert (found.low, found.high) == (0.6, 0.6)
    assert translated(0.9, "entropy", "entropy", 7).low == 0.9


def test_a_known_value_of_two_options() -> None:
    """1 - H = 0.55 in bits is p = 0.9059, so 2p - 1 = 0.8118."""
    assert translated(0.55, "entropy", "jev", 2).low == pytest.approx(0.8118, abs=5e-5)


@given(st.lists(st.floats(0.5, 1.0).map(lambda p: [p, 1 - p]), min_size=1, max_size=30))
def test_a_matched_threshold_over_two_options_decides_all_alike(
    answers: list[list[float]],
) -> None:
    found = matched(answers, 0.5, "jev", "entropy")

    now = [confidence(one, "entropy") >= found.threshold for one in answers]
    before = [confidence(one, "jev") >= 0.5 for one in answers]
    assert found.alike == pytest.approx(1.0)
    assert found.kept == pytest.approx(sum(before) / len(answers))
    assert now == before or found.kept_now == 0.0


def test_a_matched_threshold_is_the_best_there_is() -> None:
    answers = [[0.7, 0.3, 0.0], [0.6, 0.2, 0.2], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]]
    found = matched(answers, 0.15, "entropy", "jev")

    old = [confidence(one, "entropy") >= 0.15 for one in answers]
    every = sorted({confidence(one, "jev") for one in answers} | {1.1})
    best = max(
        sum((confidence(one, "jev") >= t) == keep for one, keep in zip(answers, old, strict=True))
        for t in every
    )
    assert found.alike == best / 4
