"""Held-out validation for stopping: train splits of sets no weight is fitted on."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from training.cosine import Cosine
from training.encoder import CrossEncoder
from training.metrics import auroc
from training.reader import Writer, logits
from training.sets import Example, asked, rows

NOUL_ROWS = {"sms_spam": 220, "scitail": 200, "boolq": 90}
CHOICE_ROWS = {"banking77": 90}
OPTIONS_SHOWN = 16
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEED = 7


@dataclass(frozen=True, slots=True)
class Validation:
    """The best mean noul AUROC, the MLP shares it asks for, and all values by set and share."""

    objective: float
    noul_share: float
    choice_share: float
    table: dict[str, dict[str, float]]


def held_out(folder: Path) -> dict[str, list[Example]]:
    """The validation examples by set: the first rows, a choice cut to 16 options at random."""
    rng = random.Random(SEED)
    held: dict[str, list[Example]] = {}
    for name, count in {**NOUL_ROWS, **CHOICE_ROWS}.items():
        first = rows(folder, name, "train")[:count]
        held[name] = [_cut(example, rng) for row in first for example in asked(row)]
    return held


def _cut(example: Example, rng: random.Random) -> Example:
    """The example with at most 16 of its options, the right one among them."""
    if len(example.options) <= OPTIONS_SHOWN:
        return example
    others = [index for index in range(len(example.options)) if index != example.gold]
    kept = sorted([example.gold, *rng.sample(others, OPTIONS_SHOWN - 1)])
    options = tuple(example.options[index] for index in kept)
    return Example(
        example.kind, example.instructions, example.state, options, kept.index(example.gold)
    )


def measured(
    model: CrossEncoder, writer: Writer, cosine: Cosine, held: Mapping[str, Sequence[Example]]
) -> Validation:
    """Per set and share of the MLP, AUROC (noul) or accuracy (choice), and what is best.

    A share of 0 is the cosine alone. Each kind takes the share with the best mean over its
    sets; the objective is that mean AUROC.
    """
    table: dict[str, dict[float, float]] = {}
    model.eval()
    for name, examples in held.items():
        terms = zip(cosine.terms(examples), examples, strict=True)
        near = [model.weighted(term, example.kind).detach() for term, example in terms]
        read = list(zip(logits(model, writer, examples), near, strict=True))
        table[name] = {share: _quality(name, examples, read, share) for share in SHARES}
    noul_share, objective = _best([table[name] for name in NOUL_ROWS])
    choice_share, _ = _best([table[name] for name in CHOICE_ROWS])
    return Validation(
        objective=objective,
        noul_share=noul_share,
        choice_share=choice_share,
        table={
            name: {str(share): round(value, 4) for share, value in line.items()}
            for name, line in table.items()
        },
    )


def _quality(
    name: str, examples: Sequence[Example], read: Sequence[tuple[Tensor, Tensor]], share: float
) -> float:
    lines = [mlp * share + near for mlp, near in read]
    if name in NOUL_ROWS:
        scores = [float(line[0] - line[1]) for line in lines]
        return auroc(scores, [example.gold == 0 for example in examples])
    both = zip(lines, examples, strict=True)
    return sum(int(torch.argmax(line)) == example.gold for line, example in both) / len(examples)


def _best(lines: Sequence[Mapping[float, float]]) -> tuple[float, float]:
    """The share with the highest mean over the sets, and that mean; the least share of equals."""
    means = {share: sum(line[share] for line in lines) / len(lines) for share in SHARES}
    share = max(SHARES, key=means.__getitem__)
    return share, means[share]
