"""Figures of a system's logits on a set, and the verdict against the two gates."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from training.manifest import HELD_OUT
from training.metrics import auroc, ece, spearman
from training.sets import Example, Kind

NOUL_GATE = 0.70
TEMPERATURES = tuple(0.25 * 1.15**power for power in range(26))
Figures = dict[str, float]


def measured(
    kind: Kind, examples: Sequence[Example], lines: Sequence[Tensor], temperature: float
) -> Figures:
    """n, accuracy, share of the commonest answer, ECE, and AUROC (noul) or rho (score)."""
    chances = [(line / temperature).softmax(0) for line in lines]
    right = [int(torch.argmax(p)) == e.gold for p, e in zip(chances, examples, strict=True)]
    golds = [example.options[example.gold] for example in examples]
    found: Figures = {
        "n": len(examples),
        "accuracy": sum(right) / len(right),
        "majority": max(map(golds.count, set(golds))) / len(golds),
        "ece": ece([float(p.max()) for p in chances], right),
        "temperature": temperature,
    }
    if kind == "noul":
        scores = [float(line[0] - line[1]) for line in lines]
        found["auroc"] = auroc(scores, [example.gold == 0 for example in examples])
    if kind == "score":
        tops = [max(len(e.options) - 1, 1) for e in examples]
        levels = [
            float(p @ torch.arange(len(p), dtype=p.dtype)) / top
            for p, top in zip(chances, tops, strict=True)
        ]
        marks = [e.gold / top for e, top in zip(examples, tops, strict=True)]
        found["rho"] = spearman(levels, marks)
    return {key: round(value, 4) for key, value in found.items()}


def temperature_of(examples: Sequence[Example], lines: Sequence[Tensor]) -> float:
    """The temperature of least mean negative log-likelihood, from a grid of 0.25 to 8.2."""

    def cost(temperature: float) -> float:
        both = zip(lines, examples, strict=True)
        return sum(-float((line / temperature).log_softmax(0)[e.gold]) for line, e in both)

    return min(TEMPERATURES, key=cost)


def verdict(ours: Mapping[str, Figures], cosine: Mapping[str, Figures]) -> dict[str, float | bool]:
    """Means over the held-out sets, and whether they pass the gates of `noul` and `choice`."""
    noul = _mean([ours[f"{name}/noul"]["auroc"] for name in HELD_OUT["noul"]])
    choice = _mean([ours[f"{name}/choice"]["accuracy"] for name in HELD_OUT["choice"]])
    least = _mean([cosine[f"{name}/choice"]["accuracy"] for name in HELD_OUT["choice"]])
    return {
        "noul_auroc": round(noul, 4),
        "noul_passes": noul >= NOUL_GATE,
        "choice_accuracy": round(choice, 4),
        "cosine_choice_accuracy": round(least, 4),
        "choice_passes": choice >= least,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
