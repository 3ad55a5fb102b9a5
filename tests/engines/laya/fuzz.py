"""Random requests in Laya's own format, most of them odd, some of them wrong."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_WORDS = [
    *[
        "invoice",
        "card",
        "the",
        "März",
        "发票",
        "переводи",
        "😀",
        "naïve",
        "ﬁ",
        "e\u0301",
        "\u200b",
    ],
    *[
        "[MASK]",
        "<mask>",
        "[SEP]",
        "<eos>",
        "[CLS]",
        "<bos>",
        "[PAD]",
        "<pad>",
        "\\n",
        "\t",
        "\xa0",
    ],
    *["12.50", "#4411", "a@b.c", "refund", "'quoted'", '"double"', "İ", "ß", "Ω", "don't", "..."],
    *["state-of-the-art", "http://x.y/z?q=1", "_under_"],
]


@dataclass(frozen=True, slots=True)
class Request:
    """State, questions and limits."""

    state: Any
    questions: dict[Any, Any]
    limits: dict[str, int]


def requests(count: int, seed: int) -> Iterator[Request]:
    """So many requests; the same ones for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        names = chance.sample(["q", "a b", "7", "x" * 30], chance.randint(1, 3))
        yield Request(
            _value(chance, 3) if chance.random() < 0.5 else _text(chance, 400),
            {name: _question(chance) for name in names},
            _limits(chance),
        )


def _limits(chance: random.Random) -> dict[str, int]:
    limits = {}
    if chance.random() < 0.3:
        limits["max_len"] = chance.choice([64, 128, 256, 1024])
    if chance.random() < 0.3:
        limits["head_max_len"] = chance.choice([24, 48, 96, 256, 400])
    return limits


def _text(chance: random.Random, most: int) -> str:
    count = int(most ** chance.random())
    return chance.choice(["", " ", "\n"]) + " ".join(chance.choices(_WORDS, k=count))


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(9 if depth else 6)
    match kind:
        case 0:
            return chance.choice([0, 1, -7, 10**20, True, False])
        case 1:
            return chance.choice([0.0, 2.0, 1e-7, 1e20, -3.25, 0.1])
        case 2:
            return None if depth < 3 else "a state"
        case 6:
            return [_value(chance, depth - 1) for _ in range(chance.randrange(6))]
        case 7 | 8:
            return {_text(chance, 3): _value(chance, depth - 1) for _ in range(chance.randrange(5))}
        case _:
            return _text(chance, 30)


def _question(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(
        ["noul", "choice", "score", "choice", "bool"][: 4 + (chance.random() < 0.05)]
    )
    question: dict[str, Any] = {"type": kind, "instructions": _instructions(chance)}
    count = int(150 ** chance.random())
    options = count
    if kind == "choice":
        labels = [
            chance.choice([f"label {i}", i, i + 0.5, f"{_text(chance, 3)} {i}"])
            for i in range(count)
        ]
        if chance.random() < 0.3:
            question["criteria"] = labels
        else:
            question["criteria"] = {label: _criterion(chance) for label in labels}
        options = len(question["criteria"])
    elif kind == "score":
        levels = [_criterion(chance) for _ in range(count)]
        keep_null = chance.random() < 0.1
        question["criteria"] = [0 if x is None and not keep_null else x for x in levels]
    elif kind == "noul":
        options = 2
        if chance.random() < 0.6:
            keys = chance.sample(["true", "false", "True", "FALSE"], chance.randint(0, 2))
            question["criteria"] = {key: _criterion(chance) for key in keys}
        if chance.random() < 0.2:
            question["labels"] = chance.choice(
                [
                    {"true": " yes ", "false": "no"},
                    {"true": "A", "false": "B"},
                    {"true": "发票", "false": "[MASK]"},
                    {"true": "A", "false": "A "},
                    {"true": "", "false": "B"},
                ]
            )
    if chance.random() < 0.2:
        order = list(range(options))
        chance.shuffle(order)
        question["option_order"] = order if chance.random() < 0.9 else order[:-1]
    if chance.random() < 0.1:
        question["unknown"] = 1
    return question


def _instructions(chance: random.Random) -> Any:
    if chance.random() < 0.8:
        return "Which? " + _text(chance, 120)
    if chance.random() < 0.8:
        return chance.choice([42, True, 0.5, ["a", 1], {"ask": "Würde er?", "n": None}])
    return chance.choice([_value(chance, 2), [], {}, None, "  "])


def _criterion(chance: random.Random) -> Any:
    return chance.choice(
        [_text(chance, 80), _text(chance, 6), None, "", 0, False, _value(chance, 1)]
    )
