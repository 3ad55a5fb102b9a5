"""Grouped causal attention by the kernel that suits: what a GPU has none for costs it dearly."""

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """[rows, heads, tokens, dim] of queries [rows, heads, tokens, dim] over keys and values [rows,
    kv_heads, keys, dim], each of which serves as many heads as there are times more of these.

    `mask` is bool[rows, 1, tokens, keys]; `None` = causal, the tokens being the last of the keys.
    On a GPU a bool mask over half a million places of a long state would be read again in every
    layer, and where a fused kernel takes none beside grouped heads, plain products would fill the
    memory: so there is no mask where causality says it all, and heads are no longer grouped where
    there is one.
    """
    grouped = query.shape[1] != key.shape[1]
    if mask is None and query.shape[2] == key.shape[2]:
        causal = query.shape[2] > 1
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=causal, enable_gqa=grouped
        )
    if mask is None and _fused(query):
        bias = causal_lower_right(query.shape[2], key.shape[2])
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, enable_gqa=grouped
        )
    if mask is None:
        mask = _lower_right(query, key)
    if query.is_cuda:
        key, value, grouped = _each(key, query.shape[1]), _each(value, query.shape[1]), False
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, enable_gqa=grouped
    )


def _fused(query: Tensor) -> bool:
    """Whether the kernel that knows where the diagonal ends is there: for 16 bits on a GPU."""
    return query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)


def _lower_right(query: Tensor, key: Tensor) -> Tensor:
    tokens, keys = query.shape[2], key.shape[2]
    every = torch.ones(tokens, keys, dtype=torch.bool, device=query.device)
    return every.tril(keys - tokens)[None, None]


def _each(x: Tensor, heads: int) -> Tensor:
    """[rows, kv_heads, …] as [rows, heads, …]."""
    return x.repeat_interleave(heads // x.shape[1], 1)
