"""Parts of rows: no state in both, copies counted once, the same split for the same rows."""

from dataclasses import replace

import pytest

from gateway.calibrating.splitting import given, split, without_repeats
from gateway.config_file import ConfigError
from gateway.labelled import Row
from tests.gateway.calibrating.rows import DESK, TEAM, row


def states(rows: tuple[Row, ...]) -> set[object]:
    return {one.state for one in rows}


def test_the_parts_share_no_state_and_miss_none() -> None:
    rows = [row(i) for i in range(900)]
    found = split(rows, share=1 / 3, seed=0)

    assert not states(found.calibrate) & states(found.certify)
    assert len(found.calibrate) + len(found.certify) == 900
    assert 250 < len(found.calibrate) < 350
    assert found.repeated == 0


def test_the_split_depends_on_states_and_seed_alone() -> None:
    rows = [row(i) for i in range(100)]
    once, reversed_, other = (
        split(rows, share=0.5, seed=1),
        split(rows[::-1], share=0.5, seed=1),
        split(rows, share=0.5, seed=2),
    )

    assert states(once.calibrate) == states(reversed_.calibrate)
    assert states(once.calibrate) != states(other.calibrate)


def test_one_state_with_two_questions_stays_together() -> None:
    rows = [r for i in range(60) for r in (row(i, name="a"), row(i, question=DESK, name="b"))]
    found = split(rows, share=0.5, seed=0)

    assert not states(found.calibrate) & states(found.certify)
    assert len(found.calibrate) % 2 == 0


def test_a_copy_is_no_further_evidence() -> None:
    both = Row("state 1", {"q": TEAM, "d": DESK}, {"q": 0, "d": 1}, "rows.jsonl:9")
    kept, repeated = without_repeats([row(1), row(1), both])

    assert repeated == 2
    assert [dict(one.labels) for one in kept] == [{"q": 0}, {"d": 1}]


def test_a_label_is_not_lost_to_an_unlabelled_copy() -> None:
    kept, repeated = without_repeats([row(1, label=None), row(1, label=2), row(2, label=None)])

    assert repeated == 1
    assert [dict(one.labels) for one in kept] == [{"q": 2}, {}]


def test_parts_that_share_a_state_are_refused_with_both_places() -> None:
    with pytest.raises(ConfigError) as refused:
        given([row(1), row(2)], [row(3), replace(row(2), place="held.jsonl:7")])

    for words in ("held.jsonl:7", "rows.jsonl:2", "1 states are in both"):
        assert words in str(refused.value)


def test_given_parts_stay_as_they_are() -> None:
    found = given([row(1), row(1)], [row(2)])

    assert (len(found.calibrate), len(found.certify), found.repeated) == (1, 1, 1)
