"""The delta rule in chunks is the rule token by token; padding leaves no trace."""

import pytest
import torch

from engines.clef.delta import Signals, delta_rule, token_by_token

ROWS, HEADS, KEY, VALUE = 2, 3, 8, 5


def signals(tokens: int, seed: int = 0) -> Signals:
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    return Signals(
        normal(ROWS, tokens, HEADS, KEY),
        normal(ROWS, tokens, HEADS, KEY),
        normal(ROWS, tokens, HEADS, VALUE),
        -normal(ROWS, tokens, HEADS).abs(),
        torch.sigmoid(normal(ROWS, tokens, HEADS)),
    )


def memory() -> torch.Tensor:
    return torch.randn(ROWS, HEADS, KEY, VALUE, generator=torch.Generator().manual_seed(9))


def part(whole: Signals, begin: int, end: int) -> Signals:
    each = (whole.query, whole.key, whole.value, whole.decay, whole.rate)
    return Signals(*(tensor[:, begin:end] for tensor in each))


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 200])
def test_chunks_compute_what_tokens_one_by_one_do(tokens: int) -> None:
    asked = signals(tokens)

    output, after = delta_rule(asked, memory())

    expected, last = token_by_token(asked, memory())
    assert torch.allclose(output, expected, atol=1e-5)
    assert torch.allclose(after, last, atol=1e-5)


def test_it_goes_on_where_it_stopped() -> None:
    asked = signals(150)
    whole, last = delta_rule(asked, memory())

    first, between = delta_rule(part(asked, 0, 70), memory())
    second, after = delta_rule(part(asked, 70, 150), between)

    assert torch.allclose(torch.cat((first, second), 1), whole, atol=1e-5)
    assert torch.allclose(after, last, atol=1e-5)


def test_tokens_that_neither_decay_nor_write_leave_the_memory_alone() -> None:
    asked = signals(40)
    still = Signals(
        asked.query, asked.key, asked.value, torch.zeros_like(asked.decay), 0 * asked.rate
    )

    _, after = delta_rule(still, memory())

    assert torch.allclose(after, memory(), atol=1e-6)
