"""Nothing is truncated unless the settings say so, and the reason can be routed on."""

import pytest

from engines.contract import Choice, Inquiry, Noul, Question, Reason, Score, Unreadable

from .conftest import Opens


def _refused(opens: Opens, state: object, question: Question, **options: object) -> Unreadable:
    with pytest.raises(Unreadable) as refused:
        opens(**options).prepare(Inquiry(state, {"q": question}))  # type: ignore[arg-type]
    return refused.value


def test_a_state_that_would_lose_tokens_is_too_long(opens: Opens) -> None:
    error = _refused(opens, "the invoice from March " * 200, Noul("Is it about money?"))

    assert error.reason is Reason.TOO_LONG
    assert error.question == "q"
    assert error.tokens is not None
    assert error.max_tokens == 512
    assert error.tokens > 512


def test_the_longest_state_that_fits_is_read_and_one_token_more_is_refused(opens: Opens) -> None:
    engine = opens()
    question = Noul("Is it about money?")
    bare = engine.prepare(Inquiry("", {"q": question}))[0].tokens
    room = 512 - bare

    assert engine.prepare(Inquiry("a" + " a" * (room - 1), {"q": question}))[0].tokens == 512
    with pytest.raises(Unreadable) as refused:
        engine.prepare(Inquiry("a" + " a" * room, {"q": question}))
    assert refused.value.tokens == 513


LONG = "words that go on and on and never come to an end " * 8


def test_an_option_of_more_than_48_tokens_is_refused(opens: Opens) -> None:
    error = _refused(opens, "s", Choice({"a": LONG, "b": "short"}, "Which?"))

    assert error.reason is Reason.OPTIONS_CUT
    assert "1 of 2 options" in str(error)
    assert "at most 48 tokens" in str(error)


def test_an_option_of_48_tokens_is_read_and_one_token_more_is_refused(opens: Opens) -> None:
    engine = opens()

    def ask(words: int) -> Inquiry:
        return Inquiry("s", {"q": Choice({"a" + " a" * (words - 1): None, "b": None}, "Which?")})

    assert len(engine.prepare(ask(48))) == 1
    with pytest.raises(Unreadable, match="1 of 2 options"):
        engine.prepare(ask(49))


def test_truncating_reads_an_option_of_more_than_48_tokens_by_its_beginning_and_says_so(
    opens: Opens,
) -> None:
    engine = opens(on_overflow="truncate")

    piece = engine.prepare(Inquiry("s", {"q": Choice({"a": LONG, "b": "short"}, "Which?")}))[0]
    reading = engine.read([piece])[0]["q"]

    assert reading.doubt == "truncated"
    assert reading.cut is not None
    assert reading.cut.dropped_tokens > 30


def test_two_options_with_the_same_beginning_would_become_one_and_are_refused(
    opens: Opens,
) -> None:
    options = {f"{LONG} {end}": None for end in ("yes", "no")}

    error = _refused(opens, "s", Choice(options, "Which?"))

    assert error.reason is Reason.OPTIONS_CUT
    assert error.question == "q"


def test_options_that_share_too_small_a_room_are_refused(opens: Opens) -> None:
    options = {f"intent {i}": f"a description of the intent number {i}" for i in range(40)}

    assert _refused(opens, "s", Choice(options, "Which?")).reason is Reason.OPTIONS_CUT


def test_a_score_with_levels_that_would_be_shortened_is_refused(opens: Opens) -> None:
    levels = [f"a description of the level number {i} of all these" for i in range(40)]

    assert _refused(opens, "s", Score(levels, "How?")).reason is Reason.OPTIONS_CUT


def test_instructions_that_would_be_cut_are_refused(opens: Opens) -> None:
    error = _refused(opens, "s", Noul("please consider one more clause " * 60))

    assert error.reason is Reason.INSTRUCTIONS_CUT


def test_options_that_do_not_fit_at_all_are_too_many(opens: Opens) -> None:
    options = dict.fromkeys(f"label {i}" for i in range(200))

    assert _refused(opens, "s", Choice(options, "Which?")).reason is Reason.TOO_MANY_OPTIONS
    assert (
        _refused(opens, "s", Choice(options, "Which?"), on_overflow="truncate").reason
        is Reason.TOO_MANY_OPTIONS
    )


def test_truncating_reads_what_fits_and_reports_what_did_not(opens: Opens) -> None:
    engine = opens(on_overflow="truncate")
    inquiry = Inquiry("the invoice from March " * 200, {"q": Noul("Is it about money?")})

    piece = engine.prepare(inquiry)[0]
    reading = engine.read([piece])[0]["q"]

    assert reading.tokens == 512
    assert reading.cut is not None
    assert reading.cut.kept_tokens == 512
    assert reading.cut.dropped_tokens > 200


def test_what_a_tournament_leaves_out_is_reported_too(opens: Opens) -> None:
    engine = opens(on_overflow="truncate", tournament=4)
    question = Choice({f"intent {i}": f"what the intent {i} means" for i in range(40)}, "Which?")

    piece = engine.prepare(Inquiry("the invoice from March " * 400, {"q": question}))[0]
    reading = engine.read([piece])[0]["q"]

    assert reading.doubt == "truncated"
    assert reading.cut is not None
    assert reading.cut.kept_tokens == reading.tokens
    assert reading.cut.dropped_tokens > 10 * 1000  # by each of the rows that were read


def test_what_fits_is_not_reported_as_truncated(opens: Opens) -> None:
    engine = opens(on_overflow="truncate")

    piece = engine.prepare(Inquiry("short", {"q": Noul("Is it?")}))[0]

    assert engine.read([piece])[0]["q"].cut is None


def test_a_longer_row_can_be_allowed(opens: Opens) -> None:
    engine = opens(max_tokens=2048)

    pieces = engine.prepare(Inquiry("the invoice from March " * 200, {"q": Noul("Is it?")}))

    assert 512 < pieces[0].tokens <= 2048
    assert engine.facts.max_tokens == 2048
