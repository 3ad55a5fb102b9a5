"""How structured content reads as a line of text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.contract import Json, Text
from engines.minilm import render

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("as it is; (really)", "as it is; (really)"),
        ("", ""),
        ({}, ""),
        ([], ""),
        ({"from": "Ann", "age": 3}, "from: Ann; age: 3"),
        (["one", 2, 2.5, None, True], "one, 2, 2.5, null, true"),
        ({"a": {"b": [1, [2, 3]]}, "c": {}}, "a: (b: (1, (2, 3))); c: ()"),
        ([{"x": "ä"}, {"x": "😀"}], "(x: ä), (x: 😀)"),
    ],
)
def test_content_reads_as_keys_and_values_in_the_senders_order(content: Text, line: str) -> None:
    assert render.line(content, 1000) == line


@settings(deadline=None)
@given(content=st.lists(JSON) | st.dictionaries(st.text(max_size=3), JSON), most=st.integers(0, 50))
def test_a_line_is_whole_or_visibly_longer_than_asked(content: Text, most: int) -> None:
    whole = render.line(content, 10**9)

    line = render.line(content, most)

    assert whole.startswith(line)
    assert line == whole or len(line) > most


def test_content_nested_deeper_than_the_stack_is_rendered() -> None:
    content: list[Json] = ["deep"]
    for _ in range(100_000):
        content = [content]

    assert "deep" in render.line(content, 10**6)
    assert len(render.line(content, 50)) <= 52


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("card_not-working", "card not working"),
        ("AddToPlaylist", "Add To Playlist"),
        ("GPT4Model", "GPT4 Model"),
        ("HTTP", "HTTP"),
        ("reverted_card_payment?", "reverted card payment?"),
        ("größeÄndern", "größe Ändern"),
        ("", ""),
    ],
)
def test_a_name_is_spoken_as_words(name: str, words: str) -> None:
    assert render.spoken(name) == words


@pytest.mark.parametrize(
    ("name", "description", "text"),
    [
        ("late_fee", None, "late fee"),
        ("late_fee", "Late fee", "late fee"),
        ("late_fee", "", "late fee"),
        ("late_fee", "money for being late", "late fee: money for being late"),
        ("late_fee", {"what": "money", "when": ["late"]}, "late fee: what: money; when: (late)"),
    ],
)
def test_an_option_says_its_name_and_its_description_but_nothing_twice(
    name: str, description: Text | None, text: str
) -> None:
    assert render.option(name, description, 1000) == text
