"""Rows through an engine: each question once, refusals kept apart, nothing lost on the way."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engines.contract import Broken, Busy, Inquiry, Reading, Reason, Tally, Unreadable
from engines.scripted import ScriptedEngine
from gateway.calibrating.reading import keys_of, read_rows
from gateway.calibrating.results import Read, Results
from gateway.labelled import Row
from tests.engines.lanes import lane_of
from tests.gateway.calibrating.rows import DESK, TEAM, honest, row


def ignored(_: int) -> None:
    """Nobody is told."""


class Told:
    """A reader that does what it is told, inquiry by inquiry."""

    name = "told"

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        self.asked.append(list(inquiry.questions))
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return {name: Reading([0.0, 1.0, 2.0], 5) for name in inquiry.questions}


def two(state: str = "s") -> Row:
    return Row(state, {"q": TEAM, "d": DESK}, {"q": 0}, "rows.jsonl:1")


def unreadable(question: str | None) -> Unreadable:
    return Unreadable("no", reason=Reason.TOO_LONG, question=question)


async def read(
    reader: Told, rows: Sequence[Row], directory: Path, *, joint: bool = False
) -> list[dict[str, Read]]:
    with Results(directory, "digest") as results:
        return await read_rows(reader, rows, results, joint=joint, told=ignored)


async def test_a_lane_reads_every_row_once_and_a_second_run_none(tmp_path: Path) -> None:
    engine = ScriptedEngine(script=honest)
    rows = [row(i) for i in range(40)]
    done: list[int] = []
    async with lane_of(engine, max_waiting=64) as lane:
        with Results(tmp_path, engine.facts.digest) as results:
            first = await read_rows(lane, rows, results, joint=False, told=done.append)
        with Results(tmp_path, engine.facts.digest) as results:
            second = await read_rows(lane, rows, results, joint=False, told=done.append)

    assert engine.entered == 40
    assert sum(done) == 80
    assert first == second
    assert first[3]["q"].log_weights == pytest.approx(honest("state 3", TEAM))
    assert first[3]["q"].tokens > 0


async def test_a_question_that_cannot_be_read_is_left_out_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    reader = Told(unreadable("d"))
    (found,) = await read(reader, [two()], tmp_path)

    assert reader.asked == [["q", "d"], ["q"]]
    assert found["d"].refused == "too_long"
    assert found["q"].log_weights == (0.0, 1.0, 2.0)


async def test_a_state_that_cannot_be_read_refuses_all_its_questions(tmp_path: Path) -> None:
    (found,) = await read(Told(unreadable(None)), [two()], tmp_path)

    assert {name: one.refused for name, one in found.items()} == dict.fromkeys("qd", "too_long")


async def test_a_joint_engine_that_refuses_one_refuses_all(tmp_path: Path) -> None:
    reader = Told(unreadable("d"))
    (found,) = await read(reader, [two()], tmp_path, joint=True)

    assert reader.asked == [["q", "d"]]
    assert {one.refused for one in found.values()} == {"too_long"}


async def test_a_busy_engine_is_asked_again(tmp_path: Path) -> None:
    reader = Told(Busy("later", retry_after_s=0.0))
    (found,) = await read(reader, [two()], tmp_path)

    assert reader.asked == [["q", "d"], ["q", "d"]]
    assert len(found) == 2


async def test_what_was_read_before_an_engine_broke_is_kept(tmp_path: Path) -> None:
    with pytest.raises(Broken):
        await read(Told(None, Broken("gone")), [two("one"), two("two")], tmp_path)
    reader = Told()
    found = await read(reader, [two("one"), two("two")], tmp_path)

    assert len(reader.asked) == 1
    assert all(len(one) == 2 for one in found)


def test_company_counts_for_joint_engines_alone() -> None:
    alone = Row("s", {"q": TEAM}, {}, "")

    assert keys_of(two(), joint=False)["q"] == keys_of(alone, joint=False)["q"]
    assert keys_of(two(), joint=True)["q"] != keys_of(alone, joint=True)["q"]
    assert len({*keys_of(two(), joint=True).values()}) == 2
