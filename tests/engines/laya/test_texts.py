"""Texts are looked at as far as they can be of use, and remembered within a budget of bytes."""

import time

import pytest

from engines.contract import Choice, Inquiry, Noul, Question, Reason, Unreadable
from engines.laya.checkpoint import Checkpoint
from engines.laya.rows import Budget, Tokens
from engines.laya.texts import Texts
from engines.laya.wording import Wording

from .conftest import Opens

WORDS = "the invoice from March was charged twice and nobody answers "
POOR = " " * 5000 + "[SEP]" * 2000
"""Fewer tokens than characters promise."""


@pytest.fixture
def texts(checkpoint: Checkpoint) -> Texts:
    return Texts(checkpoint.tokenizer, checkpoint.specials, harden=True, memory_bytes=1 << 20)


@pytest.mark.parametrize("text", [WORDS * 500, "请退款" * 3000, "x" * 20_000, POOR + WORDS * 500])
@pytest.mark.parametrize("most", [48, 512])
def test_a_glance_finds_the_ids_that_the_whole_text_has(texts: Texts, text: str, most: int) -> None:
    whole = texts.whole(text).ids

    begin, end = texts.enough(text, most), texts.enough(text, most, end=True)

    assert not begin.whole
    assert not end.whole
    assert most < len(begin.ids) <= len(whole)
    assert begin.ids[:most] == whole[:most]
    assert end.ids[-most:] == whole[-most:]


def test_a_text_that_is_poor_in_tokens_is_looked_at_to_its_end(texts: Texts) -> None:
    found = texts.enough(POOR, 8192)

    assert found.whole
    assert found == texts.whole(POOR)


def test_only_what_can_be_of_use_whole_is_remembered(texts: Texts) -> None:
    for i in range(50):
        texts.remembered(f"{i} {WORDS * 100}", 48)
        texts.remembered("a b c d e f g h i j k l m n o p q r s t u v w x y z " * 2, 48)
    assert texts.kept_bytes == 0

    first = texts.remembered("short", 48)

    assert 0 < texts.kept_bytes < 1000
    assert texts.remembered("short", 48) is first


def test_what_is_remembered_stays_within_its_bytes(checkpoint: Checkpoint) -> None:
    texts = Texts(checkpoint.tokenizer, checkpoint.specials, harden=True, memory_bytes=5000)

    for i in range(100):
        texts.remembered(f"option {i}", 48)

    assert 2000 < texts.kept_bytes <= 5000


def test_the_row_of_a_huge_state_is_the_one_that_all_its_tokens_would_make(
    tokens: Tokens,
) -> None:
    wording = Wording("choice", "Which? " + WORDS * 300, ("a " + WORDS * 90, "b"))
    budget = Budget(512, 192)
    for state in (WORDS * 800, [WORDS] * 800):
        row = tokens.row(wording, tokens.state(state, 512), budget)

        assert row.ids == tokens.row(wording, tokens.state(state), budget).ids
        assert row.losses.at_least
        assert row.losses.state > 0


@pytest.mark.parametrize(
    ("state", "question", "reason"),
    [
        (WORDS * 50_000, Noul("Is it?"), Reason.TOO_LONG),
        ([WORDS] * 50_000, Noul("Is it?"), Reason.TOO_LONG),
        ("s", Noul(WORDS * 50_000), Reason.INSTRUCTIONS_CUT),
        ("s", Choice({"a": WORDS * 50_000, "b": None}), Reason.OPTIONS_CUT),
    ],
)
def test_three_megabytes_are_refused_without_reading_them_all(
    opens: Opens, state: object, question: Question, reason: Reason
) -> None:
    engine = opens()
    began_s = time.process_time()

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry(state, {"q": question}))  # type: ignore[arg-type]

    assert time.process_time() - began_s < 0.5  # all of it would take more than ten times as long
    assert refused.value.reason is reason
    if reason is not Reason.OPTIONS_CUT:
        assert "at least" in str(refused.value)
