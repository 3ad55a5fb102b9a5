"""The memo: exact, per question, bounded, and one reading for identical questions at once."""

import asyncio
from collections.abc import Mapping

import pytest

from engines.contract import (
    Asset,
    Busy,
    Choice,
    Inquiry,
    Noul,
    Question,
    Reading,
    Score,
    Tally,
    label_count,
)
from gateway.memo import Memo


class CountingReader:
    """Answers after `release`; remembers what it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[Inquiry] = []
        self.release = asyncio.Event()
        self.release.set()
        self.fails = False

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        self.asked.append(inquiry)
        await self.release.wait()
        if self.fails:
            raise Busy("full", retry_after_s=1.0)
        return {
            name: Reading([float(len(self.asked))] * label_count(question), 7)
            for name, question in inquiry.questions.items()
        }


def ask(state: str = "a state", **questions: Question) -> Inquiry:
    return Inquiry(state, questions or {"q": Noul("Is it?")})


async def test_a_question_that_was_read_before_is_not_read_again() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)
    first = await memo.read(ask(), patience_s=1.0)

    again = await memo.read(ask(), patience_s=1.0)

    assert again["q"].log_weights == first["q"].log_weights
    assert (first["q"].tokens, again["q"].tokens) == (7, 0)  # who reads pays, once
    assert len(reader.asked) == 1
    assert (memo.hits, memo.misses) == (1, 1)


async def test_the_id_of_a_question_does_not_count_and_answers_keep_the_askers_order() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)
    await memo.read(ask(a=Noul("Is it?")), patience_s=1.0)

    readings = await memo.read(ask(new=Noul("Is it new?"), b=Noul("Is it?")), patience_s=1.0)

    assert list(readings) == ["new", "b"]
    assert list(reader.asked[1].questions) == ["new"]


@pytest.mark.parametrize(
    "other",
    [
        Inquiry("another state", {"q": Choice({"a": None, "b": "1"}, "Which?")}),
        Inquiry("a state", {"q": Choice({"b": "1", "a": None}, "Which?")}),
        Inquiry("a state", {"q": Choice({"a": None, "b": "1"}, "Which one?")}),
        Inquiry("a state", {"q": Choice({"a": None, "b": "1"}, ["Which?"])}),
        Inquiry("a state", {"q": Choice({"a": "", "b": "1"}, "Which?")}),
        Inquiry("a state", {"q": Score(["a", "b"], "Which?")}),
        Inquiry("a state", {"q": Choice({"a": None, "b": "1"}, "Which?")}, language="de"),
    ],
)
async def test_whatever_a_model_can_see_counts(other: Inquiry) -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)
    await memo.read(
        Inquiry("a state", {"q": Choice({"a": None, "b": "1"}, "Which?")}), patience_s=1.0
    )

    await memo.read(other, patience_s=1.0)

    assert len(reader.asked) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"x": 1}, {"x": 1.0}),
        ({"x": 1}, {"x": True}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ('{"a": 1}', {"a": 1}),
        ({"x": 10**30}, {"x": 10**31}),
    ],
)
async def test_states_that_only_look_alike_are_read_apart(one: object, other: object) -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)

    for state in (one, other, one):
        await memo.read(Inquiry(state, {"q": Noul("?")}), patience_s=1.0)  # type: ignore[arg-type]

    assert len(reader.asked) == 2


async def test_identical_questions_at_the_same_time_are_read_once() -> None:
    reader = CountingReader()
    reader.release.clear()
    memo = Memo(reader, "digest", 100_000)
    asks = [asyncio.create_task(memo.read(ask(), patience_s=1.0)) for _ in range(20)]
    await asyncio.sleep(0)

    reader.release.set()
    answers = await asyncio.gather(*asks)

    assert len(reader.asked) == 1
    assert all(one["q"].log_weights == answers[0]["q"].log_weights for one in answers)
    assert sum(one["q"].tokens for one in answers) == 7  # one of them has paid


async def test_twins_within_one_request_are_read_once() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)

    readings = await memo.read(ask(a=Noul("Is it?"), b=Noul("Is it?")), patience_s=1.0)

    assert readings["a"].log_weights == readings["b"].log_weights
    assert (readings["a"].tokens, readings["b"].tokens) == (7, 0)
    assert len(reader.asked[0].questions) == 1


async def test_a_hit_may_cost_what_its_first_reading_did() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000, hits_cost=True)

    first = await memo.read(ask(a=Noul("Is it?"), b=Noul("Is it?")), patience_s=1.0)
    again = await memo.read(ask(c=Noul("Is it?")), patience_s=1.0)

    assert [first["a"].tokens, first["b"].tokens, again["c"].tokens] == [7, 7, 7]
    assert len(reader.asked) == 1


async def test_when_the_first_asker_leaves_the_next_one_reads_for_itself() -> None:
    reader = CountingReader()
    reader.release.clear()
    memo = Memo(reader, "digest", 100_000)
    first = asyncio.create_task(memo.read(ask(), patience_s=1.0))
    await asyncio.sleep(0)
    second = asyncio.create_task(memo.read(ask(), patience_s=1.0))
    await asyncio.sleep(0)

    first.cancel()
    reader.release.set()

    assert (await second)["q"].tokens == 7
    assert len(reader.asked) == 2


async def test_failures_are_not_remembered() -> None:
    reader = CountingReader()
    reader.fails = True
    memo = Memo(reader, "digest", 100_000)
    with pytest.raises(Busy):
        await memo.read(ask(), patience_s=1.0)

    reader.fails = False

    assert (await memo.read(ask(), patience_s=1.0))["q"].tokens == 7


async def test_old_entries_make_room_for_new_ones_by_bytes() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 1_500)  # two small readings, and no large one at all
    large = Choice({f"{i}": None for i in range(100)}, "Which?")

    for state in ("a", "b", "a", "c", "a", "b"):
        await memo.read(ask(state), patience_s=1.0)
    await memo.read(ask(q=large), patience_s=1.0)
    await memo.read(ask(q=large), patience_s=1.0)

    assert [inquiry.state for inquiry in reader.asked] == ["a", "b", "c", "b"] + ["a state"] * 2


async def test_inquiries_with_images_pass_through() -> None:
    reader = CountingReader()
    memo = Memo(reader, "digest", 100_000)
    inquiry = Inquiry("s", {"q": Noul("?")}, {"i": Asset("image/png", b"x")})

    for _ in range(2):
        await memo.read(inquiry, patience_s=1.0)

    assert reader.asked == [inquiry, inquiry]
