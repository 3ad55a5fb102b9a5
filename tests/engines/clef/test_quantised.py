"""8-bit weights: half the memory of the large products, answers that move a little."""

import pytest
import torch

from engines.clef.checkpoint import Checkpoint
from engines.clef.model import Model, opened
from engines.clef.prefixes import Prefixes
from engines.clef.quantised import LARGE
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings, Precision
from engines.clef.tokens import Tokens

from .golden import TINY, cases

CASES = [case for case in cases() if len(case.ids) < 700]


def model_in(checkpoint: Checkpoint, precision: Precision) -> tuple[Model, ClefSettings]:
    settings = ClefSettings(TINY, device="cpu", precision=precision, max_images=0)
    return opened(checkpoint, settings), settings


@pytest.mark.parametrize(("precision", "most", "mean"), [("int8", 0.14, 0.03), ("fp8", 0.25, 0.1)])
def test_answers_move_by_no_more_than_was_measured(
    checkpoint: Checkpoint, tokens: Tokens, precision: Precision, most: float, mean: float
) -> None:
    model, settings = model_in(checkpoint, precision)

    found = Reader(model, settings, Prefixes(0)).logits([case.prompt(tokens) for case in CASES])

    moved = [
        float((torch.tensor(own).softmax(0) - torch.tensor(plain).softmax(0)).abs().max())
        for ours, case in zip(found, CASES, strict=True)
        for own, plain in zip(ours, case.fp32, strict=True)
    ]
    assert 0 < max(moved) < most
    assert sum(moved) / len(moved) < mean


@pytest.mark.parametrize("precision", ["int8", "fp8"])
def test_large_products_are_shrunk_and_nothing_else(
    checkpoint: Checkpoint, precision: Precision
) -> None:
    model, _ = model_in(checkpoint, precision)

    for name, weight in model.backbone.named_parameters():
        small = type(weight.data) is torch.Tensor and weight.dtype is torch.bfloat16
        plain = "torchao" not in type(weight).__module__ and small
        assert plain != (name.split(".")[-2] in LARGE), name
    assert all("torchao" not in type(p).__module__ for p in model.head.parameters())


def test_the_delta_rules_pace_keeps_its_precision() -> None:
    assert not {"in_proj_a", "in_proj_b", "conv1d"} & LARGE
