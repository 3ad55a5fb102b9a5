"""The most tokens that an engine may make of an inquiry: known before anything is tokenised.

Every tokenizer here makes at most one token of each UTF-8 byte of what it is given. What an engine
adds to the texts, and how often it reads them, differs.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Appetite:
    """What one engine reads beside an inquiry's own texts, in tokens."""

    question: int = 32
    """Around each question, its state and instructions included."""
    text: int = 16
    """Around each option, level, and side of a yes/no question."""
    quoted: bool = False
    """Whether it reads options and levels as JSON strings, with their escapes."""
    named: bool = False
    """Whether it reads a question's id."""
    group: int = 0
    """Options that it reads at once where all do not fit, each time with the state; 0 = all."""
    pictures: int = 0
    """Most tokens of a question with images; 0 = it sees none."""


USUAL = Appetite()
"""A few special tokens around each text."""
