"""The decision head: options read the whole prompt, questions read their options and each other.

Any number of prompts at once, padded and masked: no loop over questions, nothing is waited for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.clef.geometry import Head

_LARGEST_LOG_SCALE = math.log(100.0)
_NORM_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Memory:
    """What the head remembers of every token of p prompts: `DecisionHead.memory` of it."""

    shared: Tensor | None
    """[1, tokens, width]: of the tokens that all of the prompts begin with."""
    own: Tensor
    """[p, tokens, width]: of the others."""
    seen: Tensor | None
    """bool[p, all tokens]: which are no padding; `None` = all."""

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        """Every token changed; what is shared is changed once."""
        shared = None if self.shared is None else change(self.shared)
        return Memory(shared, change(self.own), self.seen)

    def joined(self) -> Tensor:
        """[p, all tokens, …]"""
        if self.shared is None:
            return self.own
        return torch.cat((self.shared.expand(self.own.shape[0], -1, -1), self.own), 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the head reads of several prompts: p prompts of up to q questions and n options."""

    memory: Memory
    last: Tensor
    """[p, hidden]: the last token's normed hidden state."""
    questions: Tensor
    """[p, q, hidden]: the mean normed hidden state of each question's instructions."""
    options: Tensor
    """[p, n, hidden]: the same of each option, those of all questions after each other."""
    words: Tensor
    """[p, n, hidden]: the mean row of the output layer's table over each option's tokens."""
    types: Tensor
    """int64[p, q]"""
    asker: Tensor
    """int64[p, n]: each option's question; q at padding, where there is no such question."""


class Attention(nn.Module):
    """Multi-head attention with biases, without positions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)
        self._heads = heads

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """Like `x`."""
        width = x.shape[-1]
        query = functional.linear(x, self.in_proj_weight[:width], self.in_proj_bias[:width])
        weight, bias = self.in_proj_weight[width:], self.in_proj_bias[width:]
        both = memory.mapped(lambda part: functional.linear(part, weight, bias)).joined()
        query, key, value = (
            part.reshape(*part.shape[:2], self._heads, -1).transpose(1, 2)
            for part in (query, *both.chunk(2, -1))
        )
        mask = None if memory.seen is None else memory.seen[:, None, None]
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out: Tensor = self.out_proj(found.transpose(1, 2).flatten(2))
        return out


class Routing(nn.Module):
    """Options gather evidence from the prompt, each for itself."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.query_norm = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.memory_norm = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.feedforward_norm = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.attention = Attention(head.width, head.heads)
        self.feedforward = _feedforward(head.width, head.feedforward, head.width)

    def forward(self, options: Tensor, memory: Memory) -> Tensor:
        """Like `options`."""
        normed = self.query_norm(options)
        options = options + self.attention(normed, memory.mapped(self.memory_norm))
        fed: Tensor = options + self.feedforward(self.feedforward_norm(options))
        return fed


class Joint(nn.Module):
    """Questions look at each other, then at the prompt as it is."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.norm2 = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.norm3 = nn.LayerNorm(head.width, _NORM_EPSILON)
        self.self_attn = Attention(head.width, head.heads)
        self.multihead_attn = Attention(head.width, head.heads)
        self.linear1 = nn.Linear(head.width, head.feedforward)
        self.linear2 = nn.Linear(head.feedforward, head.width)

    def forward(self, fields: Tensor, memory: Memory, asked: Tensor | None) -> Tensor:
        """Like `fields`; `asked` says which of them are questions, `None` = all."""
        normed = self.norm1(fields)
        fields = fields + self.self_attn(normed, Memory(None, normed, asked))
        fields = fields + self.multihead_attn(self.norm2(fields), memory)
        wide = functional.gelu(self.linear1(self.norm3(fields)))
        fed: Tensor = fields + self.linear2(wide)
        return fed


class DecisionHead(nn.Module):
    """Evidence to logits. Parameter names are those of `joint_head.safetensors`."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        hidden, width = head.hidden, head.width
        self.shape = head
        self.hidden_norm = nn.LayerNorm(hidden, _NORM_EPSILON)
        self.memory_projection = nn.Linear(hidden, width, bias=False)
        self.question_projection = nn.Linear(hidden, width, bias=False)
        self.option_question_projection = nn.Linear(hidden, width, bias=False)
        self.global_projection = nn.Linear(hidden, width, bias=False)
        self.option_context_projection = nn.Linear(hidden, width, bias=False)
        self.option_lexical_projection = nn.Linear(hidden, width, bias=False)
        self.type_embedding = nn.Embedding(3, width)
        self.evidence_layers = nn.ModuleList(Routing(head) for _ in range(head.routing_layers))
        self.option_summary_norm = nn.LayerNorm(width, _NORM_EPSILON)
        self.layers = nn.ModuleList(Joint(head) for _ in range(head.layers))
        self.field_norm = nn.LayerNorm(width, _NORM_EPSILON)
        self.option_norm = nn.LayerNorm(width, _NORM_EPSILON)
        self.residual_scorer = _feedforward(4 * width, width, 1)
        self.prior_logit_scale = nn.Parameter(torch.empty(()))
        self.joint_logit_scale = nn.Parameter(torch.empty(()))
        self.residual_gate = nn.Parameter(torch.empty(()))

    def memory(self, normed: Tensor) -> Tensor:
        """[…, hidden] normed hidden states to the [..., width] that the head remembers of them."""
        remembered: Tensor = self.memory_projection(normed)
        return remembered

    def forward(self, evidence: Evidence) -> Tensor:
        """float32[p, n]: one logit per option; at padding they mean nothing."""
        count = evidence.types.shape[1]
        every = torch.arange(count, device=evidence.asker.device)
        own = evidence.asker[..., None] == every  # [p, n, q]
        place = evidence.asker.clamp(max=count - 1)[..., None]
        asked = None if count == 1 else own.any(1)
        options = self._routed(evidence, place)
        fields = self._summarised(evidence, options, own)
        for layer in self.layers:
            fields = layer(fields, evidence.memory, asked)
        fields = self.field_norm(fields)
        width = fields.shape[-1]
        mine = fields.gather(1, place.expand(-1, -1, width))
        joint = self._compared(mine, self.option_norm(options))
        return (self._prior(evidence, place) + torch.sigmoid(self.residual_gate) * joint).float()

    def _routed(self, evidence: Evidence, place: Tensor) -> Tensor:
        """[p, n, width]"""
        question = self.option_question_projection(evidence.questions)
        options: Tensor = self.option_context_projection(evidence.options)
        options = options + self.option_lexical_projection(evidence.words)
        options = options + question.gather(1, place.expand(-1, -1, question.shape[-1]))
        for layer in self.evidence_layers:
            options = layer(options, evidence.memory)
        return options

    def _summarised(self, evidence: Evidence, options: Tensor, own: Tensor) -> Tensor:
        """[p, q, width]: each question with what its options found, and what it is."""
        base: Tensor = self.question_projection(evidence.questions)
        match = torch.einsum("pnw,pqw->pqn", options, base) / math.sqrt(options.shape[-1])
        match = match.masked_fill(~own.transpose(1, 2), torch.finfo(match.dtype).min)
        summary = torch.softmax(match, -1) @ options
        whole = self.global_projection(evidence.last)[:, None]
        kinds = self.type_embedding(evidence.types)
        summed: Tensor = base + self.option_summary_norm(summary) + whole + kinds
        return summed

    def _prior(self, evidence: Evidence, place: Tensor) -> Tensor:
        """[p, n]: how close an option's words are to the question and the last token."""
        asked = evidence.questions + evidence.last[:, None]
        asked = functional.normalize(asked, dim=-1, eps=1e-12)
        words = functional.normalize(evidence.words, dim=-1, eps=1e-12)
        mine = asked.gather(1, place.expand(-1, -1, asked.shape[-1]))
        return _scale(self.prior_logit_scale) * (words * mine).sum(-1)

    def _compared(self, field: Tensor, option: Tensor) -> Tensor:
        """[p, n]: scaled cosine of question and option, and what a small network adds."""
        close = functional.cosine_similarity(field, option, dim=-1, eps=1e-8)
        pair = torch.cat((field, option, field * option, (field - option).abs()), -1)
        rest: Tensor = self.residual_scorer(pair)[..., 0]
        return _scale(self.joint_logit_scale) * close + rest


def _feedforward(inputs: int, wide: int, outputs: int) -> nn.Sequential:
    """The places 1 and 2 hold what has no parameters."""
    return nn.Sequential(
        nn.Linear(inputs, wide), nn.GELU(), nn.Identity(), nn.Linear(wide, outputs)
    )


def _scale(logarithm: Tensor) -> Tensor:
    return logarithm.clamp(max=_LARGEST_LOG_SCALE).exp()
