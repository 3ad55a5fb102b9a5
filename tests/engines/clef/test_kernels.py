"""Fused kernels are called as their projects have it, and used only where they are right."""

import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from engines.clef import kernels
from engines.clef.delta import Rule, Signals, delta_rule
from engines.clef.kernels import (
    Convolve,
    convolved,
    fused_convolve,
    fused_rule,
    kernels_for,
    trusted_convolve,
    trusted_rule,
)

CPU = torch.device("cpu")

FLA = '''
"""The signature of flash-linear-attention, computed as slowly as possible."""

import torch


def chunk_gated_delta_rule(
    q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, cu_seqlens=None,
):
    assert q.dtype == k.dtype == v.dtype
    assert q.dtype != torch.float32, "does not support float32"
    assert beta.dim() == g.dim() == 3 and use_qk_l2norm_in_kernel and output_final_state
    unit = torch.nn.functional.normalize
    q, k = unit(q.float(), dim=-1) * q.shape[-1] ** -0.5, unit(k.float(), dim=-1)
    state, out = initial_state.float(), []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None, None]
        known = (k[:, t, :, :, None] * state).sum(-2)
        fresh = (v[:, t].float() - known) * beta[:, t].float()[..., None]
        state = state + k[:, t, :, :, None] * fresh[:, :, None, :]
        out.append((q[:, t, :, :, None] * state).sum(-2))
    return torch.stack(out, 1).to(v.dtype), state
'''

CONV = '''
"""The signature of causal-conv1d."""

import torch


def causal_conv1d_fn(
    x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False,
    final_states_out=None, activation=None,
):
    assert x.dim() == 3 and weight.dim() == 2 and weight.shape[0] == x.shape[1]
    assert x.stride(1) == 1, "channels next to each other"
    assert x.shape[1] % 8 == x.stride(2) % 8 == x.stride(0) % 8 == 0
    padded = torch.nn.functional.pad(x, (weight.shape[1] - 1, 0))
    out = torch.nn.functional.conv1d(padded, weight[:, None], groups=x.shape[1])
    return torch.nn.functional.silu(out) if activation == "silu" else out
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both projects, with the names and signatures that they have."""
    rule = tmp_path / "fla/ops/gated_delta_rule"
    rule.mkdir(parents=True)
    for package in (tmp_path / "fla", tmp_path / "fla/ops"):
        (package / "__init__.py").touch()
    (rule / "__init__.py").write_text(FLA, "utf-8")
    (tmp_path / "causal_conv1d.py").write_text(CONV, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(kernels.importlib.sys.modules)  # type: ignore[attr-defined]
    yield
    modules: dict[str, ModuleType] = kernels.importlib.sys.modules  # type: ignore[attr-defined]
    for name in set(modules) - before:
        if name.partition(".")[0] in ("fla", "causal_conv1d"):
            del modules[name]


@pytest.mark.usefixtures("installed")
def test_flash_linear_attention_is_called_as_it_wants_to_be() -> None:
    assert trusted_rule(fused_rule, CPU) is not delta_rule


@pytest.mark.usefixtures("installed")
def test_causal_conv1d_is_called_as_it_wants_to_be() -> None:
    assert trusted_convolve(fused_convolve, CPU) is not convolved


def test_what_is_not_installed_is_not_used() -> None:
    assert fused_rule() is None
    assert trusted_rule(fused_rule, CPU) is delta_rule
    assert trusted_convolve(fused_convolve, CPU) is convolved


def transposed(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
    """A rule that keeps its memory the other way round."""
    output, after = delta_rule(signals, memory)
    return output, after.mT


def broken(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
    raise AssertionError("expected another layout")


def nowhere(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
    output, after = delta_rule(signals, memory)
    return output * float("nan"), after


@pytest.mark.parametrize(
    ("rule", "said"), [(transposed, "away"), (broken, "does not work"), (nowhere, "away")]
)
def test_a_rule_that_is_wrong_here_is_told_and_left_alone(
    rule: Rule, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tiergate.clef"):
        found = trusted_rule(lambda: rule, CPU)

    assert found is delta_rule
    assert said in caplog.messages[0]


def test_a_package_that_cannot_be_imported_is_told_and_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def made() -> Convolve | None:
        raise ImportError("undefined symbol: _ZN3c10")

    with caplog.at_level(logging.WARNING, "tiergate.clef"):
        assert trusted_convolve(made, CPU) is convolved

    assert "causal-conv1d does not work here" in caplog.messages[0]


def test_a_convolution_that_is_shifted_is_left_alone() -> None:
    def shifted(inputs: Tensor, weight: Tensor) -> Tensor:
        return convolved(inputs, weight).roll(1, 1)

    assert trusted_convolve(lambda: shifted, CPU) is convolved


@pytest.mark.parametrize(
    ("device", "dtype"), [("cpu", torch.bfloat16), ("cuda", torch.float32)], ids=str
)
def test_fused_kernels_are_for_sixteen_bits_on_a_gpu(
    device: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("asked for")

    monkeypatch.setattr(kernels, "trusted_rule", never)

    found = kernels_for(torch.device(device), dtype)

    assert (found.rule, found.convolve) == (delta_rule, convolved)
