"""Token ids: the file's own rules, pieces by themselves, huge texts at a bounded cost."""

import pytest

from engines.clef.checkpoint import Checkpoint
from engines.clef.rendering import Worded, header, option, rendered, worded
from engines.clef.tokens import Tokens
from engines.contract import Choice, Json, Noul, Score

MARKED = "नमस्ते दुनिया สวัสดีชาวโลก مَرْحَبًا ą̊ ễ"


def test_combining_marks_stay_with_their_letters(checkpoint: Checkpoint) -> None:
    """A tokenizer rebuilt from the class that `tokenizer_config.json` names cuts before each."""
    own = checkpoint.tokenizer().pre_tokenizer
    assert own is not None

    pieces = own.pre_tokenize_str("नमस्ते दुनिया")

    assert len(pieces) == 2


def test_marked_texts_have_the_ids_of_the_file(checkpoint: Checkpoint) -> None:
    plain = checkpoint.tokenizer().encode(MARKED, add_special_tokens=False).ids

    for harden in (True, False):
        assert list(Tokens(checkpoint, harden=harden).state(MARKED, 1000).ids) == plain


def test_a_huge_state_is_not_read_to_its_end(tokens: Tokens) -> None:
    text = "the invoice from March was charged twice " * 5000

    looked = tokens.state(text, 100)

    assert not looked.whole
    assert 100 < len(looked.ids) < 2000
    whole = tokens.state(text, 1_000_000)
    assert whole.whole
    assert whole.ids[: len(looked.ids)] == looked.ids


def test_a_text_that_is_poor_in_tokens_is_read_as_far_as_it_takes(tokens: Tokens) -> None:
    looked = tokens.state("a" * 100 + " " * 50_000, 1000)

    assert looked.whole == (len(looked.ids) <= 1000 + 64)


def test_questions_are_remembered_whole(tokens: Tokens) -> None:
    question = worded(Choice({"a": "b", "c": None}, "Which is remembered?"))

    assert tokens.body(question, "x") is tokens.body(question, "y")


def test_an_id_that_stands_in_for_instructions_counts(tokens: Tokens) -> None:
    bare = worded(Noul())

    assert tokens.body(bare, "first") != tokens.body(bare, "second")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is \n", "as it is \n"),
        ({"b": 1, "a": [1.0, 1e20, None, True]}, '{"a":[1.0,1e+20,null,true],"b":1}'),
        ({"é": "\x7f\u2028", "Z": '"'}, '{"Z":"\\"","é":"\x7f\u2028"}'),
        (2**70, "1180591620717411303424"),
    ],
)
def test_structured_content_is_compact_json_sorted_by_code_point(content: Json, text: str) -> None:
    assert rendered(content) == text


def test_a_description_stands_before_its_option_and_may_be_missing() -> None:
    assert option("x", "why") == '{"description":"why","option_id":"x"}'
    assert option("x", "") == '{"description":"","option_id":"x"}'
    assert option("x", None) == '{"option_id":"x"}'
    assert header(2, "urgency", "noul") == "\nFIELD 2\nID: urgency\nTYPE: noul\nINSTRUCTION: "


def test_choices_are_sorted_and_remember_the_askers_order() -> None:
    question = worded(Choice({"b": None, "a": None, "B": None, "é": None}))

    assert question.labels == (2, 1, 0, 3)
    assert question.options[0] == '{"option_id":"B"}'


def test_kinds_have_their_rows_in_the_heads_table() -> None:
    kinds = [worded(one) for one in (Noul(), Choice({"a": None}), Score(["low", "high"]))]

    assert [(one.kind, one.type) for one in kinds] == [("noul", 0), ("choice", 1), ("score", 2)]
    assert kinds[2].options[1] == '{"description":"high","option_id":"1"}'


def test_a_noul_has_its_default_descriptions_unless_told_otherwise() -> None:
    said: Worded = worded(Noul("?", true="Yes, today"))

    assert "Yes, today" in said.options[0]
    assert "The proposition is false or the answer is no." in said.options[1]
