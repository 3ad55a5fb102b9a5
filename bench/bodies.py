"""The request bodies of every bench: drawn from one seed, so two runs send the same bytes."""

import random
from collections.abc import Callable

import orjson

SEED = 20261130
MODEL = "jev-latest"
"""An alias that every peer knows."""

_WORDS = """
    account agent amount answer april blocked button cannot card charge check clear client closed
    code contract copy credit customer date deliver detail discount email error export failed
    february file form friday help invoice late letter limit login march message missing monday
    money month number offer office open order paid page parcel password payment please plan
    price print problem product promised queue reach receipt refund reply report request reset
    return screen second send sent service shop sign since store support system team terminal
    thank ticket today total transfer twice update upgrade version waited wallet week wrong
"""


def text(draw: random.Random, chars: int) -> str:
    """Words in lower case, separated by blanks, at least `chars` characters together."""
    vocabulary = _WORDS.split()
    words: list[str] = []
    length = 0
    while length < chars:
        words.append(draw.choice(vocabulary))
        length += len(words[-1]) + 1
    return " ".join(words)


def bodies(seed: int = SEED) -> dict[str, bytes]:
    """Name → JSON body: `1q` about 1 KB with one choice of 4 options, `8q`, `64q`, `255options`.

    `8q` and `64q` mix kinds: of every four questions two are choices of 4 options, one is a yes/no
    question and one a score of 5 levels.
    """
    return {
        "1q": _body(seed, 600, 1, lambda draw, _: _choice(draw, 4, 66)),
        "8q": _body(seed, 600, 8, _mixed),
        "64q": _body(seed, 600, 64, _mixed),
        "255options": _body(seed, 600, 1, lambda draw, _: _choice(draw, 255, 46)),
    }


def _body(
    seed: int,
    state_chars: int,
    count: int,
    question: Callable[[random.Random, int], dict[str, object]],
) -> bytes:
    draw = random.Random(seed)
    state = text(draw, state_chars)
    questions = {f"q{i}": question(draw, i) for i in range(count)}
    return orjson.dumps({"state": state, "model": MODEL, "questions": questions})


def _mixed(draw: random.Random, i: int) -> dict[str, object]:
    match i % 4:
        case 1:
            return {
                "type": "noul",
                "instructions": text(draw, 90),
                "criteria": {"true": text(draw, 60), "false": text(draw, 60)},
            }
        case 3:
            levels = [text(draw, 35) for _ in range(5)]
            return {"type": "score", "instructions": text(draw, 90), "criteria": levels}
        case _:
            return _choice(draw, 4, 40)


def _choice(draw: random.Random, options: int, chars: int) -> dict[str, object]:
    """A choice; option names carry their number, so that they are distinct."""
    names = _WORDS.split()
    named = {f"{draw.choice(names)}_{i}": text(draw, chars) for i in range(options)}
    return {"type": "choice", "instructions": text(draw, 70), "criteria": named}
