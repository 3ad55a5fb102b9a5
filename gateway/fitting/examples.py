"""Labelled rows, sorted by question: which states have which label, and which are kept back."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from engines.contract import Choice, Noul, Question, Score
from engines.minilm import render
from engines.minilm.encode import MAX_CHARS
from gateway.labelled import Row
from policies.cells import fingerprint


@dataclass(slots=True)
class Examples:
    """What is known about one question. The texts are the operator's: never log them."""

    name: str
    """The question's id in the first row that asks it."""
    question: Question = field(repr=False)
    texts: list[str] = field(default_factory=list, repr=False)
    """States as the encoder reads them. No text is there twice with the same label."""
    labels: list[int] = field(default_factory=list, repr=False)
    """Index of each text's label."""
    repeated: int = 0
    """Rows left out because they say again what another row says."""

    @property
    def fingerprint(self) -> str:
        """Of the question."""
        return fingerprint(self.question)

    @property
    def contradictions(self) -> int:
        """Texts that stand there with more than one label."""
        return len(self.texts) - len(set(self.texts))


def by_question(rows: Iterable[Row]) -> dict[str, Examples]:
    """Fingerprint → its examples, in the order of the rows; rows without a label are left out."""
    found: dict[str, Examples] = {}
    known: dict[int, str] = {}  # rows of a file share their questions
    said: set[tuple[str, str, int]] = set()
    for row in rows:
        text = render.line(row.state, MAX_CHARS)
        for name, label in row.labels.items():
            question = row.questions[name]
            mark = known.setdefault(id(question), fingerprint(question))
            examples = found.setdefault(mark, Examples(name, question))
            if (mark, text, label) in said:
                examples.repeated += 1
                continue
            said.add((mark, text, label))
            examples.texts.append(text)
            examples.labels.append(label)
    return found


def held_out(texts: Iterable[str], share: float) -> list[bool]:
    """Which texts are kept from training; about `share` of them.

    It depends on the text alone: equal texts are on one side, and rows that are added later move
    none of the others.
    """
    return [_draw("kept back", text) < share for text in texts]


def folds(texts: list[str], labels: list[int], count: int) -> list[int]:
    """A fold in [0, count) for every text: equal texts share it, each label is spread evenly."""
    fold_of: dict[str, int] = {}
    dealt: Counter[int] = Counter()
    order = sorted(range(len(texts)), key=lambda i: (_draw("fold", texts[i]), i))
    for i in order:
        if texts[i] not in fold_of:
            fold_of[texts[i]] = (dealt[labels[i]] + labels[i]) % count
            dealt[labels[i]] += 1
    return [fold_of[text] for text in texts]


def label_names(question: Question) -> list[str]:
    """What to call the labels in a report, in label order."""
    match question:
        case Noul():
            return ["true", "false"]
        case Choice():
            return list(question.options)
        case Score():
            return [str(level) for level in range(len(question.levels))]


def _draw(what: str, text: str) -> float:
    """A number in [0, 1) that looks random and is always the same."""
    digest = hashlib.sha256(f"{what} {text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
