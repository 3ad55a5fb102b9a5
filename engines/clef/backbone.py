"""The decoder: embedded tokens in, final hidden states out, and what it takes to go on later."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engines.clef.crossing import placed
from engines.clef.geometry import Text
from engines.clef.kernels import Kernels
from engines.clef.layers import (
    FullAttention,
    LinearAttention,
    Mlp,
    Stretch,
    Turn,
    ZeroCentredNorm,
    last_of,
)
from engines.clef.past import Past


class Layer(nn.Module):
    """Attention of either kind and an MLP, each on a normed input and added to it."""

    def __init__(self, text: Text, *, linear: bool) -> None:
        super().__init__()
        self.input_layernorm = ZeroCentredNorm(text.hidden, text.epsilon)
        self.post_attention_layernorm = ZeroCentredNorm(text.hidden, text.epsilon)
        self.mlp = Mlp(text)
        self.is_linear = linear
        if linear:
            self.linear_attn = LinearAttention(text)
        else:
            self.self_attn = FullAttention(text)

    def full(
        self, x: Tensor, stretch: Stretch, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states, keys, values; see `FullAttention`."""
        seen, keys, values = self.self_attn(self.input_layernorm(x), stretch, keys, values)
        return self._fed(x + seen), keys, values

    def linear(
        self, x: Tensor, stretch: Stretch, kernels: Kernels, convolved: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states, the convolution's inputs, memory; see `LinearAttention`."""
        normed = self.input_layernorm(x)
        seen, mixed, memory = self.linear_attn(normed, stretch, kernels, convolved, memory)
        return self._fed(x + seen), mixed, memory

    def _fed(self, x: Tensor) -> Tensor:
        fed: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return fed


class Backbone(nn.Module):
    """Every layer and the final norm; the embeddings are a table elsewhere."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.text = text
        self.layers = nn.ModuleList(Layer(text, linear=linear) for linear in text.linear)
        self.norm = ZeroCentredNorm(text.hidden, text.epsilon)

    def forward(
        self,
        embedded: Tensor,
        stretch: Stretch,
        past: Past | None,
        kernels: Kernels,
        *,
        ends: bool = False,
    ) -> tuple[Tensor, Past]:
        """Hidden states after the final norm, [rows, tokens, hidden], and the past with them.

        The new past has no lengths yet; it is empty for rows that end here, so that no layer's
        keys and states outlive it. What comes out at padding means nothing. Causal: what a row's
        tokens give depends on no later one.
        """
        before = past or self._nothing(embedded)
        x = embedded
        keys: list[Tensor] = []
        values: list[Tensor] = []
        convolved: list[Tensor] = []
        memories: list[Tensor] = []
        linear = full = 0
        for layer in self.layers:
            assert isinstance(layer, Layer)  # a ModuleList forgets what it holds
            if layer.is_linear:
                state = before.convolved[linear], before.memories[linear]
                x, mixed, memory = layer.linear(x, stretch, kernels, *state)
                linear += 1
                if not ends:
                    convolved.append(last_of(mixed, stretch.ends, self.text.kernel - 1))
                    memories.append(memory)
                del mixed  # as long as the tokens, and not to be held through the next layer
            else:
                earlier = (past.keys[full], past.values[full]) if past else (None, None)
                x, key, value = layer.full(x, stretch, *earlier)
                full += 1
                if not ends:
                    keys.append(key)
                    values.append(value)
        after = Past((), tuple(keys), tuple(values), tuple(convolved), tuple(memories))
        return self.norm(x), after

    def _nothing(self, embedded: Tensor) -> Past:
        """The past of rows that have none."""
        text, count = self.text, embedded.shape[0]
        layers = sum(text.linear)
        last = embedded.new_zeros(count, text.kernel - 1, text.channels)
        shape = (count, text.value_heads, text.key_dim, text.value_dim)
        memory = torch.zeros(shape, dtype=torch.float32, device=embedded.device)
        return Past((), (), (), (last,) * layers, (memory,) * layers)


def stretch_of(
    turn: Turn, lengths: Sequence[int], past: Past | None, *, always: bool = False
) -> Stretch:
    """Rows of so many tokens each, padded to the longest turn, after what they have read.

    With `always` it says what counts also where everything does.
    """
    device, tokens = turn.cos.device, turn.cos.shape[1]
    valid = ends = None
    if always or min(lengths) < tokens:
        ends = placed(lengths, device)
        valid = torch.arange(tokens, device=device) < ends[:, None]
    return Stretch(turn, valid, ends, _mask(past, tokens, device, always))


def _mask(past: Past | None, tokens: int, device: torch.device, each: bool) -> Tensor | None:
    """Everything that counts of the past, and of the new tokens those up to oneself.

    `None` where all of the past counts: new tokens are padded after their end, where nobody looks.
    """
    if past is None or (not each and min(past.lengths) == past.width):
        return None
    new = torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()
    old = torch.arange(past.width, device=device) < placed(past.lengths, device)[:, None]
    old = old[:, None, :].expand(-1, tokens, -1)
    return torch.cat((old, new.expand(old.shape[0], -1, -1)), 2)[:, None]
