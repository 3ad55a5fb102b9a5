"""Other ways of asking the same question, to which a sound engine gives the same answer. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from engines.contract import Choice, Noul, Question, Text, label_count

Test: TypeAlias = Literal["order", "id", "neighbours", "twin", "escape"]

TESTS: tuple[Test, ...] = get_args(Test)
"""`order`: the same options in another order; `id`: another question id; `neighbours`: other
questions in the same request; `twin`: the opposite question; `escape`: an option more, for what
fits no other."""

ESCAPE = "none of these"
_MOST_ORDERS = 8

_STRANGER = Noul("Is the text written in verse?")
"""A neighbour that has nothing to do with any question."""

_WORDS = (
    "other others none neither unknown unclear unsure uncertain undecided misc miscellaneous else "
    "na oos general cannot nothing sonstiges andere anderes keine keines unbekannt autre autres "
    "aucun aucune inconnu otro otra otros ninguno ninguna desconocido"
)
_ESCAPES = frozenset(_WORDS.split())
"""Words that make an option one for everything else."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One other way of asking."""

    test: Test
    name: str
    """The id under which it is asked."""
    question: Question
    places: tuple[int, ...]
    """Where each label of the original stands among the variant's, in the original's order."""
    neighbours: Mapping[str, Question] = field(default_factory=dict)
    """What is asked along with it."""


def variants(
    name: str,
    question: Question,
    others: Mapping[str, Question],
    twin: Noul | None = None,
) -> tuple[Variant, ...]:
    """Every variant of a question; `others` are those of the same file, itself not among them.

    `twin` asks the opposite; without one it is made up in English.
    """
    same = tuple(range(label_count(question)))
    alone = Variant("id", name, question, same)
    found = list(_orders(alone))
    found += [replace(alone, name=new) for new in ("q", _telling(question)) if new != name]
    company = {other: one for other, one in others.items() if other != name}
    stranger = "stranger" if name != "stranger" else "another"
    found.append(replace(alone, test="neighbours", neighbours={stranger: _STRANGER}))
    if company:
        found.append(replace(alone, test="neighbours", neighbours=company))
    if isinstance(question, Noul):
        opposite = _opposite(question) if twin is None else twin
        found.append(Variant("twin", name, opposite, (1, 0)))
    if isinstance(question, Choice) and not has_escape(question):
        options = {**question.options, ESCAPE: None}
        found.append(Variant("escape", name, replace(question, options=options), same))
    return tuple(found)


def has_escape(question: Choice) -> bool:
    """Whether some option is, by its name, for what fits no other."""
    words = (set(re.split(r"[\W_]+", name.casefold())) for name in question.options)
    return any(not found.isdisjoint(_ESCAPES) for found in words)


def samples(question: Question) -> tuple[Text, ...]:
    """States to try a question on when nobody gives any: what its labels say of themselves.

    At least one, at most eight, the empty state first.
    """
    match question:
        case Noul():
            said: Sequence[Text | None] = [question.true, question.false]
        case Choice():
            said = [text or name for name, text in question.options.items()]
        case _:
            said = list(question.levels)
    return ("", *[text for text in said if text][:7])


def _orders(alone: Variant) -> list[Variant]:
    """Rotations, at most seven evenly spread, and the reversal where it is none of them."""
    question = alone.question
    if not isinstance(question, Choice) or (n := len(question.options)) < 2:
        return []
    turns = sorted({max(1, n * i // _MOST_ORDERS) for i in range(1, _MOST_ORDERS)})
    if n <= _MOST_ORDERS:
        turns = list(range(1, n))
    orders = [tuple((i + turn) % n for i in range(n)) for turn in turns]
    if n > 2:
        orders.append(tuple(range(n - 1, -1, -1)))
    names, found = list(question.options), []
    for order in orders:
        options = {names[i]: question.options[names[i]] for i in order}
        places = tuple(order.index(i) for i in range(n))
        found.append(Variant("order", alone.name, replace(question, options=options), places))
    return found


def _telling(question: Question) -> str:
    """An id that would give an answer away to whoever reads ids."""
    match question:
        case Choice():
            return f"the_answer_is_{list(question.options)[-1]}"
        case Noul():
            return "certainly_not"
        case _:
            return "lowest_level"


def _opposite(question: Noul) -> Noul:
    """A question that is to be answered with yes where the other is with no."""
    ask = "Is the answer to this question no?"
    match question.instructions:
        case None:
            about: Text | None = None
        case str(text):
            about = f"{ask} {text}"
        case content:
            about = {"ask": ask, "question": content}
    return Noul(about, true=question.false, false=question.true)
