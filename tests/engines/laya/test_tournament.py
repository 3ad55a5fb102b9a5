"""The tournament's arithmetic, without a model."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.laya.tournament import groups, played, rounds
from engines.laya.wording import Wording


def wording(count: int) -> Wording:
    return Wording("choice", "Which?", tuple(f"{i}" for i in range(count)))


def ask(wordings: Sequence[Wording]) -> list[list[float]]:
    """Prefers the option whose number is nearest to 100."""
    return [[-abs(int(option) - 100) / 10 for option in each.options] for each in wordings]


@given(count=st.integers(1, 600), size=st.integers(2, 40))
def test_groups_cover_every_place_once_in_order_and_are_near_equal(count: int, size: int) -> None:
    found = groups(count, size)

    assert [at for group in found for at in group] == list(range(count))
    assert len(found) == -(-count // size)
    assert max(map(len, found)) <= size
    assert max(map(len, found)) - min(map(len, found)) <= 1


@given(count=st.integers(2, 600), size=st.integers(2, 40))
def test_the_best_option_wins_and_everyone_has_a_weight(count: int, size: int) -> None:
    weights = played(wording(count), size, ask)

    assert len(weights) == count
    assert weights.index(max(weights)) == min(100, count - 1)


def test_finalists_keep_their_weights_and_the_eliminated_lie_far_below() -> None:
    weights = played(wording(20), 10, ask)

    assert sorted(weights)[-2:] == pytest.approx([-9.1, -8.1])
    assert sum(weight == pytest.approx(-9.1 - 30) for weight in weights) == 18


def test_few_options_are_asked_at_once() -> None:
    asked: list[int] = []

    def counting(wordings: Sequence[Wording]) -> list[list[float]]:
        asked.extend(len(each.options) for each in wordings)
        return ask(wordings)

    played(wording(10), 10, counting)

    assert asked == [10]


def test_every_round_is_foreseen_with_the_heaviest_options() -> None:
    found = rounds(wording(255), 16, heaviest=float)

    assert [len(each.options) for each in found[:-1]].count(16) == 15
    assert found[-1].options == tuple(str(group[-1]) for group in groups(255, 16))
