"""Trains the cross-encoder for a given time, on one thread, with held-out validation.

    python -m training.train --data DIR --out DIR --minutes 60

A run that is started again with the same `--out` goes on from its last checkpoint.
"""

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from training import encoder, sources, validate
from training.cosine import Cosine
from training.derive import Sources, example
from training.encoder import CrossEncoder, padded
from training.reader import Writer
from training.sets import Example

SEED = 20
BATCH = 16
POOL_BATCHES = 16
RATE, HEAD_RATE, SCALE_RATE = 2e-4, 1e-3, 2e-2
FROZEN_LAYERS = 2
WARM_UP_STEPS = 40
PREFIX_TOKENS, OPTION_TOKENS = 128, 32
RPS_WEIGHT = 0.5
CHECK_EVERY_S = 660.0


@dataclass(slots=True)
class Progress:
    """How far a run is: steps done, wall and CPU seconds spent, the best validation yet."""

    step: int = 0
    spent_s: float = 0.0
    cpu_s: float = 0.0
    best: float = float("-inf")


def loss_of(logits: Tensor, example: Example) -> Tensor:
    """Cross-entropy in nats, for a score plus half the ranked probability score."""
    loss = functional.cross_entropy(logits[None], torch.tensor([example.gold]))
    if example.kind == "score":
        steps = torch.arange(len(example.options))
        reached = (steps >= example.gold).float()
        gaps = logits.softmax(0).cumsum(0) - reached
        loss = loss + RPS_WEIGHT * (gaps**2).sum() / max(len(example.options) - 1, 1)
    return loss


def backward(
    model: CrossEncoder, writer: Writer, examples: Sequence[Example], terms: Sequence[Tensor]
) -> dict[str, list[float]]:
    """Adds the gradients of one batch; returns the loss of each example by its kind."""
    ids, positions, blocks, markers, _ = padded([writer.row(example) for example in examples])
    logits = model(ids, positions, blocks, markers)
    losses = [
        loss_of(line[: len(example.options)] + model.weighted(term, example.kind), example)
        for line, example, term in zip(logits, examples, terms, strict=True)
    ]
    torch.autograd.backward(torch.stack(losses).mean())
    seen: dict[str, list[float]] = {}
    for asked, loss in zip(examples, losses, strict=True):
        seen.setdefault(asked.kind, []).append(loss.item())
    return seen


def pool(made: Sources, writer: Writer, rng: random.Random) -> list[list[Example]]:
    """Fresh examples in batches of like length, the batches in random order."""
    fresh = [example(made, rng) for _ in range(BATCH * POOL_BATCHES)]
    fresh.sort(key=lambda example: len(writer.row(example)))
    batches = [fresh[start : start + BATCH] for start in range(0, len(fresh), BATCH)]
    rng.shuffle(batches)
    return batches


def optimiser_of(model: CrossEncoder) -> torch.optim.AdamW:
    """AdamW over what is not frozen; the head and the three cosine scalars move faster."""
    scales = [model.noul_scale, model.noul_offset, model.score_scale]
    for layer in model.encoder.layers[:FROZEN_LAYERS]:
        layer.requires_grad_(False)
    model.encoder.norm.requires_grad_(False)
    body = [weight for weight in model.encoder.parameters() if weight.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": body, "peak": RATE, "weight_decay": 0.01},
            {"params": list(model.head.parameters()), "peak": HEAD_RATE, "weight_decay": 0.01},
            {"params": scales, "peak": SCALE_RATE, "weight_decay": 0.0},
        ]
    )


class Run:
    """A model in training, its optimiser and its progress, kept in the folder `out`."""

    def __init__(self, folder: Path, out: Path, budget_s: float) -> None:
        tokenizer = encoder.tokenizer()
        self._out = out
        self._budget_s = budget_s
        self._cosine = Cosine(encoder.Encoder().load_base(), tokenizer)
        self._writer = Writer(tokenizer, PREFIX_TOKENS, OPTION_TOKENS)
        self._made = sources.loaded(folder, self._cosine)
        self._held = validate.held_out(folder)
        self._model = CrossEncoder()
        self._model.encoder.load_base()
        self._optimiser = optimiser_of(self._model)
        self._progress = Progress()
        if (out / "last.pt").exists():
            stored = torch.load(out / "last.pt", weights_only=True)
            self._model.load_state_dict(stored["model"])
            self._optimiser.load_state_dict(stored["optimiser"])
            self._progress = Progress(**stored["progress"])

    def go(self) -> None:
        """Trains until the budget is spent; leaves `last.pt`, `best.pt` and `log.jsonl`."""
        due_s = self._progress.spent_s + CHECK_EVERY_S
        while self._progress.spent_s < self._budget_s:
            if self._progress.spent_s >= due_s:
                self._check()
                due_s = self._progress.spent_s + CHECK_EVERY_S
            self._round()
        self._check()

    def _round(self) -> None:
        """One pool of fresh examples, batch by batch."""
        progress = self._progress
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        before_s, before_cpu_s = progress.spent_s, progress.cpu_s
        batches = pool(self._made, self._writer, random.Random(f"{SEED}/{progress.step}"))
        terms = self._cosine.terms([example for batch in batches for example in batch])
        seen: dict[str, list[float]] = {}
        self._model.train()
        for number, batch in enumerate(batches):
            left = max(1 - progress.spent_s / self._budget_s, 0.0)
            for group in self._optimiser.param_groups:
                group["lr"] = group["peak"] * min(progress.step / WARM_UP_STEPS, 1.0) * left
            near = terms[number * BATCH : (number + 1) * BATCH]
            found = backward(self._model, self._writer, batch, near)
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            self._optimiser.step()
            self._optimiser.zero_grad()
            progress.step += 1
            progress.spent_s = before_s + time.monotonic() - start_s
            progress.cpu_s = before_cpu_s + time.process_time() - start_cpu_s
            for kind, losses in found.items():
                seen.setdefault(kind, []).extend(losses)
        means = {kind: round(sum(losses) / len(losses), 3) for kind, losses in sorted(seen.items())}
        self._log({"step": progress.step, "spent_s": round(progress.spent_s), "loss": means})

    def _check(self) -> None:
        """Validates, keeps a checkpoint, and keeps it as the best if it is."""
        progress, model = self._progress, self._model
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        found = validate.measured(model, self._writer, self._cosine, self._held)
        progress.spent_s += time.monotonic() - start_s
        progress.cpu_s += time.process_time() - start_cpu_s
        better = found.objective > progress.best
        progress.best = max(progress.best, found.objective)
        kept = {
            "model": model.state_dict(),
            "progress": asdict(progress),
            "validation": asdict(found),
        }
        torch.save({**kept, "optimiser": self._optimiser.state_dict()}, self._out / "last.pt")
        if better:
            torch.save(kept, self._out / "best.pt")
        scales = (model.noul_scale, model.noul_offset, model.score_scale)
        self._log(
            {
                "step": progress.step,
                "validation": asdict(found),
                "cpu_s": round(progress.cpu_s),
                "best": better,
                "scales": [round(scale.item(), 3) for scale in scales],
            }
        )

    def _log(self, line: Mapping[str, object]) -> None:
        with (self._out / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    Run(given.data, given.out, given.minutes * 60).go()
