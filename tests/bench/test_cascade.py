"""A cascade of real engines on BANKING77: dearer is better, and better than chance."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.cascade import CARD, RESULTS, main
from bench.cascade_curves import Pair, at_random, beats_random, by_oracle, by_share
from bench.cascade_readings import Readings, read_by, rows_of
from bench.cascade_tables import card_with, markdown
from engines.contract import Choice, Engine
from engines.fitted.engine import FittedEngine
from engines.lane import Lane, rows
from engines.starter.engine import StarterEngine
from gateway.decide import decide
from gateway.labelled import Row
from gateway.plan import Means, Plan, Tier
from policies.cascade import NEVER, Floors

DATA = Path(__file__).parents[1] / "data"
ROWS, ROWS_ASKED = 300, 40


@pytest.fixture(scope="module")
def test_rows() -> list[Row]:
    return rows_of(DATA, "banking77", "test")[:ROWS]


@pytest.fixture(scope="module")
def starter() -> Iterator[StarterEngine]:
    engine = StarterEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def fitted() -> Iterator[FittedEngine]:
    engine = FittedEngine(path=str(DATA / "heads"))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def read(
    test_rows: list[Row], starter: StarterEngine, fitted: FittedEngine
) -> tuple[Readings, Readings]:
    """What the starter and the fitted head say of the rows; the head stands in for a large one."""
    (small, large), dropped = read_by([starter, fitted], test_rows)
    assert dropped == 0
    return small, large


@pytest.fixture(scope="module")
def pair(read: tuple[Readings, Readings]) -> Pair:
    small, large = read
    return Pair(small.top, small.right, large.right)


def test_accuracy_rises_with_cost(pair: Pair) -> None:
    at = [round(share * pair.rows) for share in (0.0, 0.2, 0.4, 0.6, 1.0)]

    found = by_share(pair)[at].tolist()

    assert found == sorted(found)
    assert found[0] < 0.7
    assert found[-1] > 0.85
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5])
def test_escalating_the_unsure_beats_escalating_at_random(pair: Pair, share: float) -> None:
    points, interval = beats_random(pair, share)

    assert points > 0.03
    assert interval.low > 0


def test_nothing_beats_the_oracle_and_all_end_where_everything_goes_up(pair: Pair) -> None:
    cascade, oracle, chance = by_share(pair), by_oracle(pair), at_random(pair)

    assert (oracle >= cascade - 1e-12).all()
    assert cascade[0] == oracle[0] == chance[0] == pair.small.mean()
    assert cascade[-1] == pytest.approx(pair.large.mean())
    assert chance[-1] == pytest.approx(pair.large.mean())


@contextmanager
def lane(name: str, engine: Engine[Any]) -> Iterator[Lane]:
    opened = Lane(name, engine, rows(1), max_waiting=4)
    try:
        yield opened
    finally:
        opened.close(drain_s=5.0)


class _Shared:
    """An engine that is closed by somebody else."""

    def __init__(self, engine: Engine[Any]) -> None:
        self.facts, self.health = engine.facts, engine.health
        self.prepare, self.read = engine.prepare, engine.read

    def close(self) -> None:
        return


async def test_the_gateway_escalates_as_the_bench_says(
    read: tuple[Readings, Readings],
    test_rows: list[Row],
    starter: StarterEngine,
    fitted: FittedEngine,
) -> None:
    small, large = read
    with lane("starter", _Shared(starter)) as first, lane("fitted", _Shared(fitted)) as second:
        plan = Plan("both", (Tier(first, floors=Floors(0.8)), Tier(second, floors=Floors(NEVER))))

        decisions = [await decide(row.inquiry, plan, Means(30.0)) for row in test_rows[:ROWS_ASKED]]

    up = small.top[:ROWS_ASKED] < 0.8
    said = np.where(up[:, None], large.shares[:ROWS_ASKED], small.shares[:ROWS_ASKED]).argmax(1)
    assert 5 < up.sum() < ROWS_ASKED - 5
    for row, decision, escalated, label in zip(test_rows, decisions, up, said, strict=False):
        question, route = row.questions["intent"], decision.routes["intent"]
        assert isinstance(question, Choice)
        assert decision.answers["intent"].choice == list(question.options)[label]  # type: ignore[union-attr]
        reason = "low_confidence" if escalated else "confident"
        assert (route.engine, route.reason) == ("fitted" if escalated else "starter", reason)


def test_the_bench_measures_a_set_and_goes_on_where_it_was(tmp_path: Path) -> None:
    lines = (DATA / "sms_spam.test.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "questions.json").write_bytes((DATA / "questions.json").read_bytes())
    for split, part in (("train", lines[:60]), ("test", lines[60:])):
        (tmp_path / f"sms_spam.{split}.jsonl").write_text("\n".join(part), encoding="utf-8")
    target = tmp_path / "found.json"
    asked = ["--data", str(tmp_path), "--sets", "sms_spam", "--json", str(target)]
    assert main(asked) == 0
    found = json.loads(target.read_text(encoding="utf-8"))
    (tmp_path / "sms_spam.test.jsonl").unlink()

    assert main([*asked, "--resume"]) == 0  # nothing is left to measure, so nothing is missing

    one = found["starter → fitted"]["sms_spam"]
    assert one["rows"] == 40
    assert one["large"]["accuracy"] > 0.8
    assert len(one["curves"]["cascade"]) == 101
    assert "sms_spam" in target.with_suffix(".md").read_text(encoding="utf-8")
    assert json.loads(target.read_text(encoding="utf-8")) == found


def test_the_recorded_tables_are_those_of_the_recorded_results() -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))

    card = CARD.read_text(encoding="utf-8")
    assert RESULTS.with_suffix(".md").read_text(encoding="utf-8") == markdown(found)
    assert card == card_with(card, found)


def test_the_recorded_promises_hold_where_the_rows_are_those_promised_about() -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    smalls = [
        one["small"]
        for sets in found.values()
        if isinstance(sets, dict)
        for one in sets.values()
        if isinstance(one, dict)
    ]
    drawings = [
        each for small in smalls for of_risk in small["violations"].values() for each in of_risk
    ]

    assert len(drawings) > 30
    assert max(each["violated"] for each in drawings) <= 0.1 + 2 * (0.1 * 0.9 / 500) ** 0.5
    assert np.mean([each["naive_violated"] for each in drawings]) > 0.2
