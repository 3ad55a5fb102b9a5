"""Builds the derivation sources from the training splits, and the label neighbours."""

import re
from collections.abc import Mapping
from pathlib import Path

from training import wording
from training.cosine import Cosine
from training.derive import Pair, Sources
from training.sets import rows, text_of

_QUOTED = re.compile(r': "(.*)"$', re.DOTALL)
UNNAMED = "out_of_scope"


def loaded(folder: Path, cosine: Cosine) -> Sources:
    """The sources made of the training splits under `folder`."""
    pairs = [
        Pair(text, claim, str(label))
        for name in ("snli_choice", "mnli_choice")
        for text, claim, label in _quoted(folder, name)
    ]
    claims = [(pair.text, pair.claim, pair.relation == "supports") for pair in pairs]
    for name in ("snli_noul", "mnli_noul"):
        claims += [(text, claim, bool(label)) for text, claim, label in _quoted(folder, name)]
    answers = [(text, asked, bool(label)) for text, asked, label in _quoted(folder, "qnli")]
    requests = [
        (text_of(row["state"]), str(_only(row["labels"])))
        for row in rows(folder, "clinc150", "train")
    ]
    likeness = [
        (text_of(row["state"]), int(str(_only(row["labels"]))))
        for row in rows(folder, "stsb", "train")
    ]
    intents = sorted({intent for _, intent in requests} - {UNNAMED})
    return Sources(
        pairs, list(dict.fromkeys(claims)), answers, requests, likeness, _near(intents, cosine)
    )


def _quoted(folder: Path, name: str) -> list[tuple[str, str, object]]:
    """(state, the text quoted in the instructions, label) of every training row."""
    found: list[tuple[str, str, object]] = []
    for row in rows(folder, name, "train"):
        quoted = _QUOTED.search(str(_only(row["questions"], "instructions")))
        if quoted is not None:
            found.append((text_of(row["state"]), quoted.group(1), _only(row["labels"])))
    return found


def _only(named: object, key: str | None = None) -> object:
    """The one value of a mapping, or one key of it."""
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ValueError("one question a row")
    (value,) = named.values()
    return value if key is None else value[key]


def _near(intents: list[str], cosine: Cosine) -> dict[str, tuple[str, ...]]:
    """Every intent with the others, nearest first."""
    vectors = cosine.vectors([wording.words(intent) for intent in intents])
    order = (vectors @ vectors.T).argsort(dim=1, descending=True).tolist()
    return {
        intent: tuple(intents[other] for other in near if intents[other] != intent)
        for intent, near in zip(intents, order, strict=True)
    }
