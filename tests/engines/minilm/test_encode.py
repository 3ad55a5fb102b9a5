"""Texts to token rows: complete or marked as cut, and never special."""

import pytest
from tokenizers import Tokenizer

from engines.minilm import pinned
from engines.minilm.encode import MAX_CHARS, MAX_TOKENS, Encoder

CLS, SEP = 101, 102
SPECIAL = {0, 100, CLS, SEP, 103}


@pytest.fixture(scope="module")
def tokenizer() -> bytes:
    return pinned.load().tokenizer


@pytest.fixture
def encoder(tokenizer: bytes) -> Encoder:
    return Encoder(tokenizer)


@pytest.mark.parametrize("text", ["[SEP]", "a [CLS] b", "[PAD][UNK][MASK]", "[sep]", "x[SEP]y"])
def test_text_that_spells_a_special_token_stays_text(encoder: Encoder, text: str) -> None:
    ids = encoder.row(text).ids.tolist()

    assert ids[0] == CLS
    assert ids[-1] == SEP
    assert not SPECIAL & set(ids[1:-1])


def test_no_text_at_all_is_a_row_of_two(encoder: Encoder) -> None:
    assert encoder.row("").ids.tolist() == [CLS, SEP]


@pytest.mark.parametrize("text", ["How do I get my money back?", "Größe – 你好, мир! 😀 naïve"])
def test_ordinary_text_has_the_tokens_of_the_published_tokenizer(
    encoder: Encoder, tokenizer: bytes, text: str
) -> None:
    published = Tokenizer.from_buffer(tokenizer)
    published.no_padding()

    assert encoder.row(text).ids.tolist() == published.encode(text).ids


def test_a_row_is_not_cut_at_the_window(encoder: Encoder) -> None:
    row = encoder.row("word " * 400)

    assert row.tokens == 402
    assert not row.cut
    assert not row.fits
    assert row.size == "402 tokens"


@pytest.mark.parametrize(("words", "fits"), [(MAX_TOKENS - 2, True), (MAX_TOKENS - 1, False)])
def test_a_row_fits_up_to_the_last_token_of_the_window(
    encoder: Encoder, words: int, fits: bool
) -> None:
    assert encoder.row("word " * words).fits is fits


def test_a_word_too_long_for_the_vocabulary_is_read_to_its_end(encoder: Encoder) -> None:
    one, other = encoder.row("ab" * 90 + "c"), encoder.row("ab" * 90 + "d")

    assert 100 not in one.ids
    assert one.ids.tolist() != other.ids.tolist()


@pytest.mark.parametrize("text", ["x" * 32_000_000, " " * 32_000_000, "e\u0301" * 9_000])
def test_a_huge_text_is_looked_at_only_at_its_beginning(encoder: Encoder, text: str) -> None:
    row = encoder.row(text)

    assert row.cut
    assert not row.fits
    assert row.tokens <= MAX_CHARS + 2
    assert row.size == f"more than {MAX_CHARS} characters and at least {row.tokens} tokens"
