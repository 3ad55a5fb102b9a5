"""Flips and position bias, by hand."""

import pytest

from engines.contract import Choice, Noul
from policies.steadiness import Answered, favoured, steadiness
from policies.variants import Variant, variants

ABC = Choice(dict.fromkeys("abc"))
ORDERS = [one for one in variants("q", ABC, {}) if one.test == "order"]
SAME = Variant("id", "q", ABC, (0, 1, 2))


def ordered(shares_of: dict[str, float], bias: list[float]) -> list[Answered]:
    """Answers of an engine that adds so much to whatever stands at each place."""

    def read(names: list[str]) -> list[float]:
        return [shares_of[name] + bias[place] for place, name in enumerate(names)]

    answers = []
    for one in ORDERS:
        assert isinstance(one.question, Choice)
        varied = read(list(one.question.options))
        answers.append(Answered(0, one, read(["a", "b", "c"]), varied))
    return answers


def test_an_engine_that_looks_at_content_alone_has_no_bias() -> None:
    found = steadiness("order", ordered({"a": 0.2, "b": 0.5, "c": 0.3}, [0.0, 0.0, 0.0]))

    assert (found.flips, found.faults) == (0, ())
    assert found.bias == pytest.approx(0.0)
    assert found.change == pytest.approx(0.0)


def test_the_favoured_place_and_its_worth_are_found() -> None:
    answers = ordered({"a": 0.2, "b": 0.5, "c": 0.3}, [-0.15, -0.15, 0.3])

    place, worth = favoured(answers)
    found = steadiness("order", answers)

    assert place == 2
    assert worth == pytest.approx(0.3, abs=0.05)
    assert found.flips > 0
    assert "place 3" in found.faults[1]


def test_what_was_as_good_as_tied_may_change_places() -> None:
    near = Answered(0, SAME, [0.40, 0.39, 0.21], [0.39, 0.40, 0.21])
    far = Answered(0, SAME, [0.50, 0.30, 0.20], [0.30, 0.50, 0.20])

    assert (near.flipped, far.flipped) == (False, True)


@pytest.mark.parametrize("test", ["id", "neighbours"])
def test_what_must_not_matter_may_change_nothing_but_rounding(test: str) -> None:
    still = [Answered(0, SAME, [0.5, 0.3, 0.2], [0.5001, 0.2999, 0.2])]
    moved = [Answered(0, SAME, [0.5, 0.3, 0.2], [0.48, 0.32, 0.2])]
    kind = SAME.test if test == "id" else "neighbours"

    assert steadiness(kind, still).faults == ()
    assert "0.020" in steadiness(kind, moved).faults[0]


def test_a_question_and_its_opposite_cannot_both_be_so() -> None:
    (twin,) = [one for one in variants("q", Noul("x?"), {}) if one.test == "twin"]
    both = Answered(0, twin, [0.9, 0.1], [0.8, 0.2])
    either = Answered(1, twin, [0.9, 0.1], [0.2, 0.8])

    found = steadiness("twin", [both, either])

    assert found.flips == 1
    assert "1 of 2" in found.faults[0]
    assert steadiness("twin", [either]).faults == ()


def test_a_missing_way_out_is_a_finding_where_it_would_be_taken() -> None:
    (three,) = [one for one in variants("q", ABC, {}) if one.test == "escape"]
    (two,) = [one for one in variants("q", Choice(dict.fromkeys("ab")), {}) if one.test == "escape"]
    taken = Answered(0, two, [0.6, 0.4], [0.2, 0.1, 0.7])
    left = Answered(0, two, [0.6, 0.4], [0.5, 0.3, 0.2])

    assert steadiness("escape", [Answered(0, three, [0.6, 0.3, 0.1], [0.6, 0.2, 0.1, 0.1])]).faults
    assert "takes 1 of 2" in steadiness("escape", [taken, left]).faults[0]
    assert steadiness("escape", [left]).faults == (), "yes and no may be all there is"
