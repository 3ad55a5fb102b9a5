"""Whether a text is English, for checkpoints that read nothing else.

Scripts are counted here; Latin text is judged by py3langid, a naive Bayes model over byte n-grams.
"""

from collections.abc import Iterator
from typing import Literal, Protocol, cast

from engines.laya.tensors import CheckpointError

Verdict = Literal["english", "foreign", "undecided"]

_MOST_CHARS = 4000
_MOST_PARTS = 32
_LEAST_LETTERS = 10
"""Shorter Latin text is undecided."""
_PART_LETTERS = 40
"""A line or field from this length on is judged by itself, so that it cannot hide."""
_FOREIGN_SHARE = 0.2
"""Of letters in other scripts."""
_LEAST_ENGLISH = 0.02
"""Probability of English below which a text is foreign. Log lines, code and names stay above."""
_LEAST_ENGLISH_PART = 0.005
_NO_HINT = frozenset({"", "c", "posix", "und", "zxx", "mul"})


class _Identifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


class Languages:
    """Judges texts. Thread-safe."""

    def __init__(self) -> None:
        """Loads the language model, about 40 MB.

        Raises:
            CheckpointError: py3langid is not installed.
        """
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError as error:
            raise CheckpointError(
                "telling languages apart needs py3langid: install the extra laya, or set "
                'language = "any" for this engine'
            ) from error
        loaded = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._identifier = cast(_Identifier, loaded)

    def verdict(self, content: object) -> Verdict:
        """Of a string, or of all strings in a JSON value taken together; keys do not count."""
        parts = list(_parts(content))
        whole = "\n".join(parts)
        verdict = self._of(whole, _LEAST_LETTERS, _LEAST_ENGLISH)
        if verdict == "foreign" or len(parts) == 1:
            return verdict
        hidden = (self._of(part, _PART_LETTERS, _LEAST_ENGLISH_PART) for part in parts)
        return "foreign" if "foreign" in hidden else verdict

    def _of(self, text: str, least_letters: int, least_english: float) -> Verdict:
        latin, other = _letters(text)
        if other > _FOREIGN_SHARE * (latin + other):
            return "foreign"
        if latin < least_letters:
            return "undecided"
        ranked = self._identifier.rank(text)
        english = next((p for language, p in ranked if language == "en"), 0.0)
        if english < least_english:
            return "foreign"
        return "english" if ranked[0][0] == "en" else "undecided"


def hinted(language: str | None) -> Verdict:
    """What a language code says, e.g. `de-AT`; undecided if it says nothing."""
    primary = (language or "").replace("_", "-").split("-")[0].strip().lower()
    if primary in _NO_HINT:
        return "undecided"
    return "english" if primary in ("en", "eng", "english") else "foreign"


def _parts(content: object) -> Iterator[str]:
    """Lines of the strings in `content`, the first few thousand characters of them."""
    left = _MOST_CHARS
    for count, line in enumerate(_lines(content)):
        if count == _MOST_PARTS or left <= 0:
            return
        yield line[:left]
        left -= len(line)


def _lines(content: object) -> Iterator[str]:
    match content:
        case str():
            yield from (line for line in content[:_MOST_CHARS].splitlines() if line.strip())
        case list():
            for item in content:
                yield from _lines(item)
        case dict():
            for item in content.values():
                yield from _lines(item)


def _letters(text: str) -> tuple[int, int]:
    """How many letters are Latin, and how many are not."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(_is_latin(ord(letter)) for letter in letters)
    return latin, len(letters) - latin


def _is_latin(code: int) -> bool:
    return code < 0x250 or 0x1E00 <= code < 0x1F00 or 0xFF21 <= code < 0xFF5B
