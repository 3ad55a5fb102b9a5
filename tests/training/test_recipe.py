"""The recipe's pure parts: block layout, derived questions, metrics, manifest."""

import json
import random
import re
from pathlib import Path

import pytest

from training import derive, layout, metrics, wording
from training.manifest import HELD_OUT
from training.sets import Example

TRAINING = Path(derive.__file__).parent
MARKER = 1
HELD_OUT_SUBJECTS = re.compile(r"spam|advert|hate|hateful|slur|phish|scam|hostil", re.IGNORECASE)

INTENTS = sorted(
    {i for group in wording.traits().values() for found in group.values() for i in found}
)
MENTIONS = [f"there is {min(words)} here" for words in wording.lexicon().values()]
RELATIONS = ("supports", "contradicts", "unrelated")
SOURCES = derive.Sources(
    pairs=[
        derive.Pair(text, f"Claim {number}.", RELATIONS[number % 3])
        for number, text in enumerate(MENTIONS)
    ],
    claims=[("A dog runs.", "A dog is running.", True), ("She sings.", "She is asleep.", False)],
    answers=[
        (f"It opened in {y}.", f"What happened in {y}?", y % 2 == 0) for y in range(1900, 1990)
    ],
    requests=[(f"please {intent}", intent) for intent in INTENTS],
    likeness=[("a: x\nb: x", 5), ("a: x\nb: y", 0), ("a: x\nb: xy", 2)],
    neighbours={name: tuple(other for other in INTENTS if other != name) for name in INTENTS},
)


def drawn(count: int) -> list[Example]:
    rng = random.Random(3)
    return [derive.example(SOURCES, rng) for _ in range(count)]


def test_every_option_starts_at_the_same_position() -> None:
    row = layout.in_blocks([101, 7, 102], [[20], [30, 31, 32]], MARKER)

    assert row.ids == (101, 7, 102, MARKER, 20, MARKER, 30, 31, 32)
    assert row.positions == (0, 1, 2, 3, 4, 3, 4, 5, 6)
    assert row.markers == (3, 5)


def test_an_option_sees_the_prefix_and_itself_only() -> None:
    row = layout.in_blocks([101, 102], [[20], [30]], MARKER)

    seen = [[int(layout.sees(query, key)) for key in row.blocks] for query in row.blocks]

    assert seen == [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 1],
    ]


def test_nothing_sees_padding_and_padding_sees_the_prefix() -> None:
    assert not any(layout.sees(block, layout.PADDING) for block in (layout.PADDING, 0, 1))
    assert layout.sees(layout.PADDING, layout.PREFIX)


def test_an_option_is_laid_out_alike_alone_and_in_company() -> None:
    alone = layout.in_blocks([101, 102], [[30, 31]], MARKER)
    among = layout.in_blocks([101, 102], [[20], [30, 31]], MARKER)

    assert among.ids[among.markers[1] :] == alone.ids[alone.markers[0] :]
    assert among.positions[among.markers[1] :] == alone.positions[alone.markers[0] :]


def test_the_gold_of_a_derived_question_is_one_of_its_distinct_options() -> None:
    for example in drawn(2000):
        assert 0 <= example.gold < len(example.options)
        assert len(set(example.options)) == len(example.options) >= 2


def test_the_same_seed_derives_the_same_questions() -> None:
    assert drawn(50) == drawn(50)


def test_no_derived_question_speaks_of_what_the_held_out_sets_ask() -> None:
    asked = [text for example in drawn(3000) for text in (example.instructions, *example.options)]

    assert not [text for text in asked if HELD_OUT_SUBJECTS.search(text)]


def test_a_claim_becomes_a_question_only_where_its_verb_is_plain() -> None:
    assert wording.turned("The man is playing a flute.") == "Is the man playing a flute?"
    assert wording.turned("Nobody saw it coming.") is None


def test_auroc_counts_ties_as_half() -> None:
    assert metrics.auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == 0.875


def test_ece_is_the_mean_gap_between_confidence_and_accuracy() -> None:
    assert metrics.ece([0.8, 0.8, 0.8, 0.8], [True, True, True, False]) == pytest.approx(0.05)


def test_spearman_of_a_reversed_order_is_minus_one() -> None:
    assert metrics.spearman([1.0, 2.0, 3.0], [9.0, 5.0, 1.0]) == pytest.approx(-1.0)


def test_no_file_of_the_manifest_is_both_fitted_and_reported() -> None:
    manifest = json.loads((TRAINING / "manifest.json").read_text(encoding="utf-8"))
    files = manifest["files"]

    assert manifest["held_out"] == {kind: list(names) for kind, names in HELD_OUT.items()}
    assert all(re.fullmatch(r"[0-9a-f]{64}", entry["sha256"]) for entry in files)
    assert len({entry["sha256"] for entry in files}) == len(files)
    fitted = {entry["set"] for entry in files if entry["role"] == "train"}
    assert not fitted & {name for names in HELD_OUT.values() for name in names}


def test_nothing_of_unverified_licence_is_trained_on() -> None:
    files = json.loads((TRAINING / "manifest.json").read_text(encoding="utf-8"))["files"]

    trained = [entry["licence"] for entry in files if entry["role"] == "train"]

    assert trained
    assert not [licence for licence in trained if "unverified" in licence]


def test_a_system_gains_nothing_over_itself() -> None:
    scored = [([float(i % 7) for i in range(40)], [i % 2 == 0 for i in range(40)])] * 2

    assert metrics.auroc_interval(scored, scored, draws=20) == (0.0, 0.0)


def test_a_perfect_system_has_an_interval_of_one_point() -> None:
    scored = [([float(i) for i in range(20)], [i >= 10 for i in range(20)])]

    assert metrics.auroc_interval(scored, draws=50) == (1.0, 1.0)
