"""The words of derived questions: templates, vocabularies, word lists."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

IMPLIES = (
    'Does the text imply that this is true: "{}"',
    "Is it true that {}?",
    "{}",
    'Does the text say that "{}"?',
    "According to the text, is this right: {}",
    "Given the text, can one conclude that {}?",
    'Is the claim "{}" supported by the text?',
    "Is this statement correct: {}",
    "True or false: {}",
    "Does it follow that {}?",
)
DENIES = (
    'Does the text contradict the claim: "{}"',
    "Is it false that {}?",
    'Does the text say the opposite of "{}"?',
    "Is this statement ruled out: {}",
    "Is it impossible, given the text, that {}?",
)
OPEN = (
    'Does the text leave open whether "{}"?',
    "Is it unclear from the text whether {}?",
    'Is more information needed to decide if "{}"?',
)
ANSWERS = (
    'Does the text contain the answer to the question: "{}"',
    'Can "{}" be answered from the text?',
    "Does this passage tell the reader {}",
    "Is the answer here? {}",
    "Is the question answered by the text: {}",
    'Would the text help someone who asks "{}"?',
)
INTENT = (
    "Is the user asking about {}?",
    "Is the intent {}?",
    "Does the message express: {}?",
    "Is this a request about {}?",
    "Does the user want {}?",
    "Should this go to the {} team?",
    "Is {} what the message is about?",
    "Would you label this {}?",
    "Does this concern {}?",
)
ABOUT = (
    "Is the message about {}?",
    "Is the user asking about {}?",
    "Does this concern {}?",
    "Is {} the topic?",
    "Does the message have to do with {}?",
    "Is this related to {}?",
    "Does the text talk about {}?",
    "Is the request one about {}?",
)
DOES = (
    "Does the user {}?",
    "Does the message {}?",
    "Would you say the writer means to {}?",
    "Is the point of the message to {}?",
    "Does this person {}?",
)
MENTIONS = (
    "Does the text mention {}?",
    "Is there any mention of {}?",
    "Is {} part of the text?",
    "Does the passage involve {}?",
    "Does the writer refer to {}?",
    "Does {} appear in the text?",
    "Is the text about {}?",
    "Would a reader come across {}?",
)
MENTIONS_NOT = (
    "Is the text free of any mention of {}?",
    "Is there nothing about {} in the text?",
    "Does the text fail to mention {}?",
)
SAME = (
    "Do text a and text b mean the same?",
    "Are the two texts paraphrases of each other?",
    "Do a and b say nearly the same thing?",
    "Are both sentences equivalent in meaning?",
)
DIFFERENT = (
    "Do text a and text b differ in meaning?",
    "Are the two texts about different things?",
    "Do a and b say different things?",
)
WHICH_INTENT = (
    "Which intent does the user request express?",
    "What does the user want?",
    "Pick the best label for the message.",
    "What is this message about?",
    "Which team should handle this?",
    "Classify the request.",
    "Choose the topic.",
)
RELATE = (
    'How does the text relate to the claim: "{}"',
    "What does the text say about this: {}",
    'Judge the claim "{}" by the text.',
    "Compare the statement with the text: {}",
)
RELATIONS: tuple[Mapping[str, str], ...] = (
    {
        "supports": "supports: the text implies the claim",
        "contradicts": "contradicts: the text says the claim is false",
        "unrelated": "unrelated: the text neither supports nor contradicts the claim",
    },
    {"supports": "true", "contradicts": "false", "unrelated": "cannot be known"},
    {"supports": "yes", "contradicts": "no", "unrelated": "maybe"},
    {"supports": "entailment", "contradicts": "contradiction", "unrelated": "neutral"},
    {"supports": "it follows", "contradicts": "it is ruled out", "unrelated": "it is left open"},
)
WHICH_CLAIM = (
    "Which statement follows from the text?",
    "Which of these is true, given the text?",
    "Pick the sentence that the text supports.",
)
WHICH_QUESTION = (
    "Which question does the text answer?",
    "What could someone ask to be given this text?",
)
WHICH_MENTION = (
    "Which of these does the text mention?",
    "What comes up in the text?",
    "Which thing is the text about?",
    "Pick what appears in the passage.",
)
NONE = (
    "none of these",
    "other",
    "something else",
    "none of the above: the request fits no option",
    "out of scope",
    "not listed",
)
HOW_ALIKE = (
    "How similar in meaning are text a and text b?",
    "Rate how alike the two texts are.",
    "To what degree do a and b say the same?",
    "How close is the meaning of a and b?",
)
LIKENESS: tuple[Sequence[str], ...] = (
    (
        "completely different meaning",
        "same topic but different meaning",
        "some shared details",
        "roughly the same meaning",
        "nearly the same meaning",
        "exactly the same meaning",
    ),
    (
        "nothing in common",
        "a common subject",
        "a few common details",
        "much in common",
        "almost identical",
        "identical in meaning",
    ),
    ("unrelated", "partly similar", "equivalent"),
    ("low", "medium", "high"),
)
HOW_SUPPORTED = (
    'How strongly does the text support "{}"?',
    "How likely is it, given the text, that {}?",
    "Rate the truth of this claim by the text: {}",
)
SUPPORT: tuple[Sequence[str], ...] = (
    ("ruled out", "possible", "certain"),
    ("false", "undecided", "true"),
    ("the text denies it", "the text does not say", "the text confirms it"),
    ("low", "medium", "high"),
)
KEYS = ("text", "message", "body", "content", "request", "input", "note")

_TURNED = re.compile(
    r"^((?:The|A|An|Some|Two|Three|Several|People|There|They|He|She|It)\b"
    r"(?:\s\w+){0,4}?) (is|are|was|were|can|will) (.{3,})$"
)


@cache
def traits() -> dict[str, dict[str, list[str]]]:
    """Group ("about", "does") to trait to the intents that have it."""
    loaded: dict[str, dict[str, list[str]]] = _beside("traits.json")
    return loaded


@cache
def lexicon() -> dict[str, frozenset[str]]:
    """The name of a thing to the lower-case words that mention it."""
    return {name: frozenset(words.split()) for name, words in _beside("lexicon.json").items()}


def _beside(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@cache
def tokens(text: str) -> frozenset[str]:
    """The lower-case words of a text."""
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def words(name: str) -> str:
    """A label as words."""
    return name.replace("_", " ")


def turned(claim: str) -> str | None:
    """A claim as the yes/no question it answers, or None where word order is unsure."""
    found = _TURNED.match(claim.strip().rstrip("."))
    if found is None:
        return None
    subject, verb, rest = found.groups()
    return f"{verb.capitalize()} {subject[0].lower()}{subject[1:]} {rest}?"


def filled(templates: Sequence[str], part: str, rng: random.Random) -> str:
    """One of the templates with the part filled in."""
    return rng.choice(templates).format(part)


def claimed(templates: Sequence[str], claim: str, rng: random.Random) -> str:
    """One of the templates with a claim in it, fitted where the sentence goes on after it."""
    template = rng.choice(templates)
    claim = claim.strip()
    if template.endswith("{}?"):
        claim = claim.rstrip(".?")
        claim = claim[:1].lower() + claim[1:]
    return template.format(claim)


def renaming(rng: random.Random) -> Callable[[str], str]:
    """How the labels of one question are shown: words, snake, camel, or with a lead."""
    style = rng.choice(("words", "words", "words", "snake", "camel", "lead"))
    if style == "snake":
        return str
    if style == "camel":
        return lambda name: "".join(part.capitalize() for part in name.split("_"))
    if style == "lead":
        lead = rng.choice(("the user asks about {}", "request: {}", "a question about {}"))
        return lambda name: lead.format(words(name))
    return words
