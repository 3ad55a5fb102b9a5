"""What the starter engine refuses to read, and what it says about it."""

from collections.abc import Sequence

import pytest

from engines.contract import (
    Asset,
    Choice,
    Inquiry,
    Noul,
    Question,
    Reason,
    Score,
    Text,
    Unreadable,
)
from engines.minilm.encode import MAX_CHARS
from engines.starter.engine import StarterEngine

LONG = "word " * 300


@pytest.mark.parametrize(
    ("state", "question", "reason", "size"),
    [
        (LONG, Noul("Is it?"), Reason.TOO_LONG, "the state: 302 tokens"),
        ("s", Choice({"a": None}, LONG), Reason.INSTRUCTIONS_CUT, "the instructions: 302 tokens"),
        ("s", Noul(LONG), Reason.INSTRUCTIONS_CUT, "the instructions: 302 tokens"),
        ("s", Choice({"b": None, "a": LONG}), Reason.OPTIONS_CUT, "option 2: 304 tokens"),
        ("s", Score(["low", LONG]), Reason.OPTIONS_CUT, "level 1: 302 tokens"),
        ("s", Noul("Is it?", LONG), Reason.OPTIONS_CUT, "the meaning of yes: 302 tokens"),
        ("s", Noul("Is it?", None, LONG), Reason.OPTIONS_CUT, "the meaning of no: 302 tokens"),
    ],
)
def test_a_text_that_does_not_fit_is_refused_with_both_counts(
    engine: StarterEngine, state: Text, question: Question, reason: Reason, size: str
) -> None:
    what, _, tokens = size.partition(": ")

    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry(state, {"first": Choice({"a": None}), "long": question}))

    assert refused.value.reason is reason
    assert refused.value.question == (None if reason is Reason.TOO_LONG else "long")
    assert f"{refused.value.tokens} tokens" == tokens
    assert refused.value.max_tokens == 256
    expected = f"{what} is too long for this model: {tokens}, at most 256 tokens fit"
    assert str(refused.value) == expected


HUGE: Sequence[Text] = ["x" * 32_000_000, ["y"] * 1_000_000, {"k": {"k": " z" * 9_000_000}}]


@pytest.mark.parametrize("huge", HUGE, ids=["word", "list", "nested"])
def test_a_huge_text_is_refused_without_being_counted(engine: StarterEngine, huge: Text) -> None:
    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry(huge, {"q": Noul("Is it?")}))

    assert refused.value.tokens is not None
    assert 256 < refused.value.tokens <= MAX_CHARS + 2
    assert f"at least {refused.value.tokens} tokens" in str(refused.value)


def test_an_image_is_refused(engine: StarterEngine) -> None:
    picture = {"<image:1>": Asset("image/png", b"not looked at")}

    with pytest.raises(Unreadable, match="cannot see images") as refused:
        engine.prepare(Inquiry("<image:1>", {"q": Choice({"a": None})}, picture))

    assert refused.value.reason is Reason.IMAGES
