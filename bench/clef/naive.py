"""What most would write first: the library's forward, then a head that loops over questions."""

import importlib
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from engines.clef.geometry import Text
from engines.clef.head import Attention, DecisionHead, Joint, Memory, Routing
from engines.clef.model import Model
from engines.clef.prompt import Asked, Prompt

_MODELS = "transformers.models.qwen3_5"


class Naive:
    """The decoder of transformers and a straightforward head, on the very same weights."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._decoder = _decoder(model)

    @torch.inference_mode()
    def logits(self, prompt: Prompt) -> tuple[tuple[float, ...], ...]:
        """The logits of its questions, each prompt computed from its first token."""
        model = self._model
        ids = torch.tensor([prompt.ids], device=model.device)
        embedded = model.embeddings.of(ids)
        hidden = self._decoder(inputs_embeds=embedded, use_cache=False).last_hidden_state[0]
        return _head(model, hidden, prompt)


def _head(model: Model, hidden: Tensor, prompt: Prompt) -> tuple[tuple[float, ...], ...]:
    head, begin = model.head, len(prompt.opening.ids)
    normed = head.hidden_norm(hidden)
    memory = head.memory(normed)
    last = normed[-1]
    questions, options, words = [], [], []
    for asked in prompt.questions:
        question = normed[begin + asked.question[0] : begin + asked.question[1]].mean(0)
        questions.append(question)
        for low, high in asked.options:
            options.append(normed[begin + low : begin + high].mean(0))
            ids = torch.tensor(prompt.schema[low:high], device=hidden.device)
            words.append(model.words.of(ids).mean(0))
    routed = _routed(head, memory, prompt, (questions, options, words))
    fields, found, at = _fields(head, memory, prompt, (questions, routed, last)), [], 0
    for i, asked in enumerate(prompt.questions):
        own = []
        for _ in asked.options:
            own.append(_score(head, fields[i], routed[at], (words[at], questions[i] + last)))
            at += 1
        found.append(tuple(own))
    return tuple(found)


def _routed(
    head: DecisionHead,
    memory: Tensor,
    prompt: Prompt,
    means: tuple[list[Tensor], list[Tensor], list[Tensor]],
) -> Tensor:
    questions, options, words = means
    rows, at = [], 0
    for i, asked in enumerate(prompt.questions):
        for _ in asked.options:
            row = head.option_context_projection(options[at])
            row = row + head.option_lexical_projection(words[at])
            rows.append(row + head.option_question_projection(questions[i]))
            at += 1
    routed = torch.stack(rows)
    for layer in head.evidence_layers:
        assert isinstance(layer, Routing)
        normed = layer.memory_norm(memory)
        routed = routed + _attend(layer.attention, layer.query_norm(routed), normed)
        routed = routed + layer.feedforward(layer.feedforward_norm(routed))
    return routed


def _fields(
    head: DecisionHead,
    memory: Tensor,
    prompt: Prompt,
    read: tuple[list[Tensor], Tensor, Tensor],
) -> Tensor:
    questions, routed, last = read
    rows, at = [], 0
    for i, asked in enumerate(prompt.questions):
        rows.append(_field(head, asked, questions[i], routed[at : at + len(asked.options)], last))
        at += len(asked.options)
    fields = torch.stack(rows)
    for layer in head.layers:
        assert isinstance(layer, Joint)
        normed = layer.norm1(fields)
        fields = fields + _attend(layer.self_attn, normed, normed)
        fields = fields + _attend(layer.multihead_attn, layer.norm2(fields), memory)
        fields = fields + layer.linear2(functional.gelu(layer.linear1(layer.norm3(fields))))
    normed_fields: Tensor = head.field_norm(fields)
    return normed_fields


def _field(
    head: DecisionHead, asked: Asked, question: Tensor, options: Tensor, last: Tensor
) -> Tensor:
    base = head.question_projection(question)
    shares = torch.softmax(options @ base / math.sqrt(base.shape[0]), 0)
    field: Tensor = base + head.option_summary_norm(shares @ options)
    field = field + head.global_projection(last) + head.type_embedding.weight[asked.type]
    return field


def _score(
    head: DecisionHead, field: Tensor, routed: Tensor, prior: tuple[Tensor, Tensor]
) -> float:
    option = head.option_norm(routed)
    words, asked = (functional.normalize(each, dim=0) for each in prior)
    scale = head.joint_logit_scale.clamp(max=math.log(100)).exp()
    joint = scale * functional.cosine_similarity(field, option, dim=0)
    pair = torch.cat((field, option, field * option, (field - option).abs()))
    joint = joint + head.residual_scorer(pair)[0]
    weight = head.prior_logit_scale.clamp(max=math.log(100)).exp()
    total = weight * (words @ asked) + torch.sigmoid(head.residual_gate) * joint
    return float(total.item())


def _attend(attention: Attention, x: Tensor, memory: Tensor) -> Tensor:
    found: Tensor = attention(x[None], Memory(None, memory[None], None))[0]
    return found


def _decoder(model: Model) -> Any:
    """The library's text model, its parameters those of ours."""
    config_class = importlib.import_module(f"{_MODELS}.configuration_qwen3_5").Qwen3_5TextConfig
    modeling = importlib.import_module(f"{_MODELS}.modeling_qwen3_5")
    config = config_class(**_config(model.backbone.text))
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        decoder: Any = modeling.Qwen3_5TextModel(config)
    state = dict(model.backbone.named_parameters())
    rows = model.embeddings.rows
    decoder.load_state_dict({**state, "embed_tokens.weight": rows}, strict=True, assign=True)
    decoder.rotary_emb = modeling.Qwen3_5TextRotaryEmbedding(config).to(model.device)
    return decoder.eval().requires_grad_(False)


def _config(text: Text) -> dict[str, Any]:
    rotary = text.rotary
    return {
        "vocab_size": text.vocabulary,
        "hidden_size": text.hidden,
        "intermediate_size": text.intermediate,
        "num_hidden_layers": len(text.linear),
        "layer_types": ["linear_attention" if x else "full_attention" for x in text.linear],
        "num_attention_heads": text.heads,
        "num_key_value_heads": text.kv_heads,
        "head_dim": text.head_dim,
        "linear_num_key_heads": text.key_heads,
        "linear_num_value_heads": text.value_heads,
        "linear_key_head_dim": text.key_dim,
        "linear_value_head_dim": text.value_dim,
        "linear_conv_kernel_dim": text.kernel,
        "rms_norm_eps": text.epsilon,
        "pad_token_id": None,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": rotary.theta,
            "partial_rotary_factor": rotary.dims / text.head_dim,
            "mrope_section": list(rotary.sections),
            "mrope_interleaved": True,
        },
    }
