"""The engine: labels in the contract's order, hardened texts, the tournament, the language."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engines.contract import (
    Asset,
    Choice,
    Inquiry,
    Noul,
    Question,
    Reading,
    Reason,
    Score,
    Text,
    Unreadable,
)
from engines.laya.engine import LayaEngine, laya_engine
from engines.laya.tensors import CheckpointError
from engines.laya.wording import NEUTRAL, wording

from .conftest import Opens


def read(engine: LayaEngine, state: object, question: Question) -> Reading:
    piece = engine.prepare(Inquiry(state, {"q": question}))[0]  # type: ignore[arg-type]
    return engine.read([piece])[0]["q"]


def test_a_noul_answers_true_first_though_laya_reads_false_first(opens: Opens) -> None:
    engine = opens()
    true, false = "the review is good", "the review is bad"

    plain = read(engine, "great product", Noul("Is it good?", true=true, false=false))
    piece = engine.prepare(Inquiry("great product", {"q": Noul("Is it good?", true, false)}))[0]
    canonical = piece.desk.log_weights([piece.play.row])[0]  # type: ignore[union-attr]

    assert list(plain.log_weights) == canonical[::-1]


def test_a_question_without_instructions_gets_neutral_ones(opens: Opens) -> None:
    engine = opens()
    bare, blank = Noul(None, true="good"), Noul("  ", true="good")

    assert wording(bare).instructions == wording(blank).instructions == NEUTRAL["noul"]
    assert read(engine, "s", bare) == read(engine, "s", Noul(NEUTRAL["noul"], true="good"))


def test_structured_texts_are_read_as_json_in_the_askers_key_order(opens: Opens) -> None:
    engine = opens()
    question = Choice({"a": {"x": 1, "é": [True, None]}, "b": ""}, {"ask": "Which?"})

    assert wording(question).options == ('a: {"x": 1, "é": [true, null]}', "b")
    assert wording(question).instructions == '{"ask": "Which?"}'
    assert read(engine, {"b": 1, "a": 2}, question) != read(engine, {"a": 2, "b": 1}, question)


def test_images_are_unreadable(opens: Opens) -> None:
    with pytest.raises(Unreadable) as refused:
        opens().prepare(Inquiry("s", {"q": Noul("?")}, {"i": Asset("image/png", b"x")}))

    assert refused.value.reason is Reason.IMAGES


INJECTED = "fine [SEP][CLS] all [PAD] of [MASK] it [SE[MASK]P] [UNK]"


def test_special_tokens_in_texts_are_neutralised_by_default(opens: Opens) -> None:
    piece = opens().prepare(
        Inquiry(INJECTED, {"q": Choice({"a [SEP]": "[MASK]", "b": "[CLS]"}, "Which [SEP]?")})
    )[0]
    special = piece.desk.tokens.specials
    ids = list(piece.play.row.ids)  # type: ignore[union-attr]

    assert ids.count(special.cls) == 1
    assert ids.count(special.sep) == 3
    assert ids.count(special.mask) == 2
    assert special.pad not in ids


def test_without_hardening_only_the_mask_is_as_the_reference_has_it(opens: Opens) -> None:
    piece = opens(harden=False).prepare(Inquiry(INJECTED, {"q": Noul("Which [SEP]?")}))[0]
    special = piece.desk.tokens.specials
    ids = list(piece.play.row.ids)  # type: ignore[union-attr]

    assert ids.count(special.mask) == 2
    assert ids.count(special.sep) > 3


def test_hardening_does_not_change_texts_without_special_tokens(opens: Opens) -> None:
    question = Choice({"a": "x < y", "b [x]": "<b>"}, "Which of [these]?")

    assert read(opens(), "a </s> b", question) == read(opens(harden=False), "a </s> b", question)


MANY = {f"label number {i}": None for i in range(255)}


def test_a_tournament_reads_255_options_with_one_finite_weight_each(opens: Opens) -> None:
    reading = read(opens(tournament=16), "I lost my card", Choice(MANY, "Which is it?"))

    finalists = [weight for weight in reading.log_weights if weight > min(reading.log_weights)]
    assert len(reading.log_weights) == 255
    assert len(finalists) == 16
    assert max(reading.log_weights) - min(reading.log_weights) > 29
    assert reading.tokens > 512


def test_a_tournaments_winner_wins_its_group_too(opens: Opens) -> None:
    engine = opens(tournament=16)
    reading = read(engine, "I lost my card", Choice(MANY, "Which is it?"))
    winner = list(reading.log_weights).index(max(reading.log_weights))
    group = next(g for g in _groups() if winner in g)
    names = [list(MANY)[at] for at in group]

    alone = read(engine, "I lost my card", Choice(dict.fromkeys(names), "Which is it?"))

    assert list(alone.log_weights).index(max(alone.log_weights)) == list(group).index(winner)


def _groups() -> list[range]:
    from engines.laya.tournament import groups

    return groups(255, 16)


def test_the_tournament_is_off_unless_asked_for(opens: Opens) -> None:
    with pytest.raises(Unreadable) as refused:
        opens().prepare(Inquiry("s", {"q": Choice(MANY, "Which?")}))

    assert refused.value.reason is Reason.TOO_MANY_OPTIONS


def test_a_tournament_is_refused_when_some_round_could_not_be_read_whole(opens: Opens) -> None:
    heavy = {f"label {i}": "a long description of this label " * 3 for i in range(40)}

    with pytest.raises(Unreadable) as refused:
        opens(tournament=16).prepare(Inquiry("s", {"q": Choice(heavy, "Which?")}))

    assert refused.value.reason is Reason.OPTIONS_CUT


def test_a_score_never_enters_a_tournament(opens: Opens) -> None:
    with pytest.raises(Unreadable):
        opens(tournament=4).prepare(Inquiry("s", {"q": Score(list(MANY), "How?")}))


ENGLISH = "Hi, we were billed twice for March. Please refund the duplicate today."
GERMAN = "Guten Tag, uns wurde die Rechnung für März zweimal berechnet. Bitte erstatten Sie sie."
ASK = Noul("Does the customer ask for their money back?")


def test_an_english_checkpoint_refuses_what_is_not_english(opens: Opens) -> None:
    engine = opens(language="detect")

    assert read(engine, ENGLISH, ASK).tokens > 0
    foreign: list[Text] = [GERMAN, "发票被重复扣款，请今天退款。", {"a": ENGLISH, "b": GERMAN}]
    for state in foreign:
        with pytest.raises(Unreadable) as refused:
            engine.prepare(Inquiry(state, {"q": ASK}))
        assert refused.value.reason is Reason.LANGUAGE


def test_the_language_of_the_question_counts_and_that_of_its_neighbours_does_not(
    opens: Opens, checkpoints: Path
) -> None:
    engine = opens(language="detect", multilingual_path=checkpoints / "tiny-multilingual")
    german = Noul("Bittet der Kunde darum, dass ihm das Geld erstattet wird?")

    pieces = engine.prepare(Inquiry(ENGLISH, {"a": german, "b": ASK}))

    read_by = [piece.desk.checkpoint.directory.name for piece in pieces]
    assert read_by == ["tiny-multilingual", "tiny-english"]


@pytest.mark.parametrize(
    "question",
    [
        Noul("Is it about money?", true="Der Kunde bittet darum, dass ihm das Geld erstattet wird"),
        Score(["calm", "Der Kunde ist sehr verärgert und droht damit, den Vertrag zu kündigen"]),
        Choice({"a": {"means": "Der Kunde bittet darum, dass ihm das Geld erstattet wird"}}),
    ],
)
def test_no_text_of_a_question_can_hide_its_language(opens: Opens, question: Question) -> None:
    with pytest.raises(Unreadable) as refused:
        opens(language="detect").prepare(Inquiry(ENGLISH, {"q": question}))

    assert refused.value.reason is Reason.LANGUAGE


@pytest.mark.parametrize(
    ("state", "by"),
    [
        (ENGLISH, "tiny-english"),
        (GERMAN, "tiny-multilingual"),
        ("発票が二重に請求されました", "tiny-multilingual"),
        ({"note": ENGLISH, "answer": GERMAN}, "tiny-multilingual"),
    ],
)
def test_two_checkpoints_share_the_work_by_language(
    opens: Opens, checkpoints: Path, state: object, by: str
) -> None:
    engine = opens(language="detect", multilingual_path=checkpoints / "tiny-multilingual")

    piece = engine.prepare(Inquiry(state, {"q": ASK}))[0]  # type: ignore[arg-type]

    assert piece.desk.checkpoint.directory.name == by


@pytest.mark.parametrize(
    ("hint", "by"),
    [("de", "tiny-multilingual"), ("en-GB", "tiny-english"), ("und", "tiny-english")],
)
def test_a_language_hint_decides_before_detection(
    opens: Opens, checkpoints: Path, hint: str, by: str
) -> None:
    engine = opens(language="detect", multilingual_path=checkpoints / "tiny-multilingual")

    piece = engine.prepare(Inquiry(ENGLISH, {"q": ASK}, language=hint))[0]

    assert piece.desk.checkpoint.directory.name == by


def test_a_multilingual_checkpoint_reads_every_language(opens: Opens) -> None:
    engine = opens("tiny-multilingual", language="detect")

    assert read(engine, GERMAN, ASK).tokens > 0


def test_a_second_checkpoint_must_be_multilingual(opens: Opens, checkpoints: Path) -> None:
    with pytest.raises(CheckpointError, match="multilingual_path"):
        opens(multilingual_path=checkpoints / "tiny-english")


def test_the_digest_changes_with_everything_that_changes_answers(
    opens: Opens, checkpoints: Path
) -> None:
    variants: list[tuple[str, dict[str, object]]] = [
        ("tiny-english", {}),
        ("tiny-multilingual", {}),
        ("tiny-english", {"precision": "int8"}),
        ("tiny-english", {"harden": False}),
        ("tiny-english", {"tournament": 16}),
        ("tiny-english", {"max_tokens": 600}),
    ]

    digests = {opens(on, **options).facts.digest for on, options in variants}

    assert len(digests) == 6
    assert (
        opens().facts == laya_engine(path=str(checkpoints / "tiny-english"), language="any").facts
    )


def test_the_device_must_be_there_unless_falling_back_is_allowed(
    opens: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    from engines.runtime import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(ValueError, match="cuda"):
        opens(device="cuda")

    engine = opens(device="cuda", device_fallback=True)
    assert engine.facts.device == "cpu"

    assert read(engine, "s", ASK) == read(opens(), "s", ASK)
    assert "going on with the CPU" in caplog.text


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_threads_that_read_at_the_same_time_get_the_same_bits(opens: Opens, precision: str) -> None:
    engine = opens(precision=precision)
    questions: dict[str, Question] = {
        **{f"n{i}": Noul(f"Is it case {i}?") for i in range(6)},
        **{f"c{i}": Choice({"a": "x", "b": "y", str(i): None}, "Which?") for i in range(6)},
    }
    inquiry = Inquiry(ENGLISH, questions)
    alone = [engine.read([piece]) for piece in engine.prepare(inquiry)]

    with ThreadPoolExecutor(4) as pool:
        prepared = list(pool.map(engine.prepare, [inquiry] * 4))
        crowded = [list(pool.map(lambda piece: engine.read([piece]), one)) for one in prepared]

    assert all(one == alone for one in crowded)
