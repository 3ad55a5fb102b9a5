"""Attention with and without a mask is the softmax of its definition."""

import pytest
import torch
from torch import Tensor

from engines.clef.attention import attended

HEADS, GROUPS, DIM = 6, 2, 8


def defined(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """By products and a softmax; `seen` is bool[tokens, keys]."""
    times = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    found: Tensor = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ value
    return found


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(("tokens", "keys"), [(5, 5), (1, 1), (5, 12), (1, 12)])
def test_without_a_mask_the_tokens_are_the_last_of_the_keys(tokens: int, keys: int) -> None:
    query, key = normal(2, HEADS, tokens, DIM), normal(2, GROUPS, keys, DIM)
    value = normal(2, GROUPS, keys, DIM) + 1

    found = attended(query, key, value, None)

    seen = torch.arange(keys) <= torch.arange(tokens)[:, None] + keys - tokens
    assert torch.allclose(found, defined(query, key, value, seen), atol=1e-6)


def test_with_a_mask_that_alone_counts() -> None:
    query, key, value = (normal(1, n, 4, DIM) for n in (HEADS, GROUPS, GROUPS))
    seen = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]).bool()

    found = attended(query, key, value, seen[None, None])

    assert torch.allclose(found, defined(query, key, value, seen), atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # torch says why a CPU has no fused kernel, and does without
@pytest.mark.parametrize(("tokens", "keys"), [(5, 12), (1, 12)])
def test_the_diagonal_that_a_gpu_is_told_ends_where_ours_does(
    monkeypatch: pytest.MonkeyPatch, tokens: int, keys: int
) -> None:
    query, key = normal(2, HEADS, tokens, DIM), normal(2, GROUPS, keys, DIM)
    value = normal(2, GROUPS, keys, DIM) + 1
    plain = attended(query, key, value, None)
    monkeypatch.setattr("engines.clef.attention._fused", lambda _: True)

    with torch.inference_mode():
        found = attended(query, key, value, None)

    assert torch.allclose(found, plain, atol=1e-6)
