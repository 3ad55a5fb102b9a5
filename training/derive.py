"""Makes many distinct questions out of labelled sets; pure but for the generator it is given.

No derived question may speak of what the held-out sets ask (spam, hate, phishing).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from training import wording
from training.sets import YES_NO, Example, level_texts, text_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise and a claim with their relation: supports, contradicts or unrelated."""

    text: str
    claim: str
    relation: str


@dataclass(frozen=True, slots=True)
class Sources:
    """The training rows in the shapes the derivations need."""

    pairs: Sequence[Pair]
    claims: Sequence[tuple[str, str, bool]]  # (text, claim, whether the text implies it)
    answers: Sequence[tuple[str, str, bool]]  # (text, question, whether the text answers it)
    requests: Sequence[tuple[str, str]]  # (text, intent)
    likeness: Sequence[tuple[str, int]]  # (rendered pair, level 0..5)
    neighbours: Mapping[str, Sequence[str]]  # intent -> the other intents, nearest first


def noul(instructions: str, state: str, holds: bool) -> Example:
    """A yes/no example."""
    return Example("noul", instructions, state, YES_NO, 0 if holds else 1)


def of_pair(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on whether a text implies, denies or leaves open a claim."""
    if rng.random() < 0.75:
        return of_claim(sources, rng)
    pair = rng.choice(sources.pairs)
    if rng.random() < 0.35:
        asked = wording.claimed(wording.OPEN, pair.claim, rng)
        return noul(asked, pair.text, pair.relation == "unrelated")
    asked = wording.claimed(wording.DENIES, pair.claim, rng)
    return noul(asked, pair.text, pair.relation == "contradicts")


def of_claim(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on whether a text, sometimes among others, implies a claim."""
    holds = rng.random() < 0.45
    text, claim, _ = _drawn(sources.claims, lambda row: row[2] == holds, rng)
    if rng.random() < 0.12:
        others = [rng.choice(sources.pairs).text for _ in range(rng.choice((1, 2)))]
        text = " ".join(rng.sample([text, *others], len(others) + 1))
    question = wording.turned(claim) if rng.random() < 0.4 else None
    return noul(question or wording.claimed(wording.IMPLIES, claim, rng), text, holds)


def of_answer(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on whether a text answers a question."""
    text, question, holds = rng.choice(sources.answers)
    if rng.random() < 0.15:
        question, holds = rng.choice(sources.answers)[1], False
    return noul(wording.claimed(wording.ANSWERS, question, rng), text, holds)


def of_intent(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on one intent, half of them the wrong one (mostly a near one)."""
    text, intent = rng.choice(sources.requests)
    holds = rng.random() < 0.5 and intent in sources.neighbours
    asked = intent
    if not holds:
        asked = _other_intent(intent, sources, rng)
    return noul(wording.claimed(wording.INTENT, wording.words(asked), rng), text, holds)


def of_trait(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on a property shared by many intents, or on either of two."""
    group = rng.choice(("about", "about", "does"))
    traits = wording.traits()[group]
    names = rng.sample(sorted(traits), 2 if rng.random() < 0.25 else 1)
    intents = frozenset(intent for name in names for intent in traits[name])
    wanted = rng.random() < 0.5
    text, _ = _drawn(sources.requests, lambda row: (row[1] in intents) == wanted, rng)
    templates = wording.ABOUT if group == "about" else wording.DOES
    return noul(wording.filled(templates, " or ".join(names), rng), text, wanted)


def of_lexicon(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on what a text mentions, labelled by a word list."""
    lists = wording.lexicon()
    names = rng.sample(sorted(lists), 2 if rng.random() < 0.2 else 1)
    words = frozenset(word for name in names for word in lists[name])
    wanted = rng.random() < 0.5
    pair = _drawn(sources.pairs, lambda p: bool(words & wording.tokens(p.text)) == wanted, rng)
    negated = rng.random() < 0.08
    templates = wording.MENTIONS_NOT if negated else wording.MENTIONS
    return noul(wording.filled(templates, " or ".join(names), rng), pair.text, wanted != negated)


def of_likeness(sources: Sources, rng: random.Random) -> Example:
    """A yes/no question on whether two texts mean the same."""
    text, level = _drawn(sources.likeness, lambda row: row[1] != 3, rng)
    if rng.random() < 0.3:
        return noul(rng.choice(wording.DIFFERENT), text, level <= 2)
    return noul(rng.choice(wording.SAME), text, level >= 4)


def choice_of_intent(sources: Sources, rng: random.Random) -> Example:
    """A choice of 2 to 10 intents, some near, some with a none-option, renamed at random."""
    text, intent = rng.choice(sources.requests)
    near = list(sources.neighbours.get(intent, ()))[:12]
    rest = [name for name in sources.neighbours if name != intent and name not in near]
    count = rng.randint(2, 8)
    hard = [name for name in rng.sample(near, len(near)) if rng.random() < 0.6]
    others = (hard + rng.sample(rest, count))[:count]
    shown = wording.renaming(rng)
    options = [shown(name) for name in others]
    none = rng.choice(wording.NONE)
    if intent not in sources.neighbours or rng.random() < 0.10:
        gold = none
    else:
        gold = shown(intent)
        if rng.random() < 0.15:
            options[0] = none
    return _choice(rng.choice(wording.WHICH_INTENT), text, gold, options, rng)


def choice_of_pair(sources: Sources, rng: random.Random) -> Example:
    """A choice of the relation of a text and a claim, in one of several vocabularies."""
    pair = rng.choice(sources.pairs)
    vocabulary = rng.choice(wording.RELATIONS)
    gold = vocabulary[pair.relation]
    options = [option for option in vocabulary.values() if option != gold]
    return _choice(wording.claimed(wording.RELATE, pair.claim, rng), pair.text, gold, options, rng)


def choice_of_claim(sources: Sources, rng: random.Random) -> Example:
    """A choice among texts: the claim that follows, or the text that answers."""
    count = rng.randint(2, 4)
    if rng.random() < 0.5:
        pair = _drawn(sources.pairs, lambda pair: pair.relation == "supports", rng)
        options = [rng.choice(sources.pairs).claim for _ in range(count)]
        return _choice(rng.choice(wording.WHICH_CLAIM), pair.text, pair.claim, options, rng)
    text, question, _ = _drawn(sources.answers, lambda row: row[2], rng)
    options = [rng.choice(sources.answers)[1] for _ in range(count)]
    return _choice(rng.choice(wording.WHICH_QUESTION), text, question, options, rng)


def choice_of_mention(sources: Sources, rng: random.Random) -> Example:
    """A choice of the one thing on a short list that a text mentions."""
    lists = wording.lexicon()
    while True:
        pair = rng.choice(sources.pairs)
        found = [name for name in sorted(lists) if lists[name] & wording.tokens(pair.text)]
        if found:
            break
    gold = rng.choice(found)
    options = [name for name in sorted(lists) if name not in found]
    options = rng.sample(options, rng.randint(2, 6))
    return _choice(rng.choice(wording.WHICH_MENTION), pair.text, gold, options, rng)


def score_of_likeness(sources: Sources, rng: random.Random) -> Example:
    """How alike two texts are, on scales of 3 or 6 levels, sometimes reversed."""
    text, level = rng.choice(sources.likeness)
    levels = rng.choice(wording.LIKENESS)
    gold = level if len(levels) == 6 else level // 2
    return _score(rng.choice(wording.HOW_ALIKE), text, levels, gold, rng)


def score_of_pair(sources: Sources, rng: random.Random) -> Example:
    """How far a text supports a claim, on three levels, sometimes reversed."""
    pair = rng.choice(sources.pairs)
    gold = ("contradicts", "unrelated", "supports").index(pair.relation)
    instructions = wording.claimed(wording.HOW_SUPPORTED, pair.claim, rng)
    return _score(instructions, pair.text, rng.choice(wording.SUPPORT), gold, rng)


def _score(
    instructions: str, text: str, levels: Sequence[str], gold: int, rng: random.Random
) -> Example:
    if rng.random() < 0.2:
        levels, gold = levels[::-1], len(levels) - 1 - gold
    options = level_texts(levels) if rng.random() < 0.8 else tuple(levels)
    return Example("score", instructions, text, options, gold)


def _choice(
    instructions: str, text: str, gold: str, others: Sequence[str], rng: random.Random
) -> Example:
    options = [gold, *(option for option in dict.fromkeys(others) if option != gold)]
    rng.shuffle(options)
    return Example("choice", instructions, text, tuple(options), options.index(gold))


def _other_intent(intent: str, sources: Sources, rng: random.Random) -> str:
    near = sources.neighbours.get(intent)
    if near and rng.random() < 0.6:
        return rng.choice(near[:12])
    return rng.choice([name for name in sorted(sources.neighbours) if name != intent])


def _drawn(rows: Sequence[T], wanted: Callable[[T], bool], rng: random.Random) -> T:
    while True:
        row = rng.choice(rows)
        if wanted(row):
            return row


MIX: tuple[tuple[float, Callable[[Sources, random.Random], Example]], ...] = (
    (0.28, of_pair),
    (0.10, of_answer),
    (0.10, of_intent),
    (0.13, of_trait),
    (0.13, of_lexicon),
    (0.03, of_likeness),
    (0.08, choice_of_intent),
    (0.03, choice_of_pair),
    (0.02, choice_of_claim),
    (0.03, choice_of_mention),
    (0.04, score_of_likeness),
    (0.03, score_of_pair),
)


def example(sources: Sources, rng: random.Random) -> Example:
    """One derived question, its kind drawn by the weights of `MIX`."""
    made = rng.choices([make for _, make in MIX], [weight for weight, _ in MIX])[0](sources, rng)
    if rng.random() < 0.08 and "\n" not in made.state:
        made = replace(made, state=text_of({rng.choice(wording.KEYS): made.state}))
    return made
