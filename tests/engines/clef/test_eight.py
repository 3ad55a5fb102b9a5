"""Products in FP8 are those of the rounded numbers, and padding is no exception."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from engines.clef import eight, quantised
from engines.clef.backbone import Backbone
from engines.clef.checkpoint import Checkpoint
from engines.clef.eight import EightBitLinear, products, rounded
from engines.clef.graphs import Recorder
from engines.clef.model import opened
from engines.clef.plan import FLASH, GIB
from engines.clef.prefixes import Prefixes
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings
from engines.clef.shapes import TEXT, text_shapes
from engines.clef.tokens import Tokens

from .golden import TINY, cases
from .test_graphs import frozen

CASES = [case for case in cases() if len(case.ids) < 700]


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_rounding_keeps_three_bits_of_every_number_whatever_its_row() -> None:
    x = normal(5, 64) * torch.tensor([1e-6, 1e-3, 1.0, 1e3, 1e6])[:, None]

    found = rounded(x)

    back = found.numbers.float() * found.scales
    largest = x.abs().amax(-1, keepdim=True)
    assert ((back - x).abs() <= x.abs() / 16 + largest / 448 / 2**9).all()
    assert found.numbers.float().abs().amax(-1).eq(448).all()


def test_a_row_of_zeros_stays_one() -> None:
    found = rounded(torch.zeros(2, 16))

    assert torch.equal(found.numbers.float() * found.scales, torch.zeros(2, 16))


def test_a_product_is_that_of_the_rounded_numbers() -> None:
    x, weight = normal(2, 3, 32), normal(8, 32)
    linear = EightBitLinear(weight)

    found = linear(x)

    exact = nn.functional.linear(x, weight)
    assert found.shape == (2, 3, 8)
    assert (found - exact).norm() < 0.06 * exact.norm()
    assert linear.weight.dtype == torch.float8_e4m3fn


def test_products_of_one_input_round_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    linears = [EightBitLinear(normal(8, 32)), EightBitLinear(normal(4, 32))]
    x = normal(2, 3, 32)
    apart = [one(x) for one in linears]
    times: list[int] = []

    def counting(matrix: torch.Tensor) -> eight.Rounded:
        times.append(1)
        return rounded(matrix)

    monkeypatch.setattr(eight, "rounded", counting)

    together = products(x, *linears)

    assert all(torch.equal(a, b) for a, b in zip(together, apart, strict=True))
    assert len(times) == 1


def test_other_products_are_left_as_they_are() -> None:
    linears = [nn.Linear(4, 2), nn.Linear(4, 3)]
    x = normal(1, 2, 4)

    assert all(torch.equal(a, b(x)) for a, b in zip(products(x, *linears), linears, strict=True))


@pytest.mark.parametrize("recorded", [False, True])
def test_answers_in_fp8_are_finite_and_move_little(
    checkpoint: Checkpoint, tokens: Tokens, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    monkeypatch.setattr(quantised, "multiplies", lambda _: True)
    settings = ClefSettings(TINY, device="cpu", precision="fp8", max_images=0)
    model = opened(checkpoint, settings)
    recorder = Recorder(frozen, GIB) if recorded else None
    reader = Reader(model, settings, Prefixes(0), recorder=recorder)

    found = reader.logits([case.prompt(tokens) for case in CASES])

    moved = [
        float((torch.tensor(own).softmax(0) - torch.tensor(plain).softmax(0)).abs().max())
        for ours, case in zip(found, CASES, strict=True)
        for own, plain in zip(ours, case.fp32, strict=True)
    ]
    small = [name for name, _ in model.backbone.named_buffers() if name.endswith("scales")]
    assert {name.split(".")[-2] for name in small} == quantised.LARGE
    assert 0 < max(moved) < 0.3
    assert sum(moved) / len(moved) < 0.12


@pytest.mark.parametrize("tokens", [1, 167, 384])
@pytest.mark.parametrize("linear", [True, False], ids=["linear attention", "full attention"])
def test_on_a_gpu_products_have_the_layout_and_scales_that_torch_asks_for(
    monkeypatch: pytest.MonkeyPatch, tokens: int, linear: bool
) -> None:
    """On a device that is only pretended torch checks sizes, strides and types as on a real one."""
    monkeypatch.setattr(quantised, "multiplies", lambda _: True)
    text = replace(FLASH, linear=(linear,))
    with torch.device("meta"):
        backbone = Backbone(text)

    made: dict[str, tuple[int, ...]] = {}
    with FakeTensorMode(), torch.inference_mode():
        for name, shape in text_shapes(text).items():
            owner, _, last = name.removeprefix(TEXT).rpartition(".")
            if owner.rpartition(".")[2] not in quantised.LARGE:
                continue
            weight = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
            setattr(backbone.get_submodule(owner), last, nn.Parameter(weight, requires_grad=False))
            quantised.shrink(backbone, f"{owner}.{last}", "fp8")
            x = torch.empty(2, tokens, shape[1], dtype=torch.bfloat16, device="cuda")
            (found,) = products(x, backbone.get_submodule(owner))
            assert (found.device.type, found.dtype) == ("cuda", torch.bfloat16)
            made[name] = tuple(found.shape)

    assert made == {name: (2, tokens, text_shapes(text)[name][0]) for name in made}
    assert len(made) == (6 if linear else 7)
