"""Every tensor that a Clef checkpoint must have, and the shape of each."""

from collections.abc import Iterable, Mapping

from engines.clef.geometry import Head, Text
from engines.clef.refusals import CheckpointError

TEXT = "model.language_model."
VISION = "model.visual."
LM_HEAD = "lm_head.weight"
EMBEDDINGS = TEXT + "embed_tokens.weight"

Shapes = dict[str, tuple[int, ...]]


def text_shapes(text: Text) -> Shapes:
    """Names as in the checkpoint, both tables among them."""
    table = (text.vocabulary, text.hidden)
    shapes: Shapes = {LM_HEAD: table, EMBEDDINGS: table, f"{TEXT}norm.weight": (text.hidden,)}
    for i, linear in enumerate(text.linear):
        layer = _linear_layer(text) if linear else _full_layer(text)
        shapes |= {f"{TEXT}layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def head_shapes(head: Head) -> Shapes:
    """Names as in `joint_head.safetensors`."""
    width, hidden = head.width, head.hidden
    shapes: Shapes = {f"{name}.weight": (width, hidden) for name in _PROJECTIONS}
    shapes |= _norm("hidden_norm", hidden)
    for name in ("option_summary_norm", "field_norm", "option_norm"):
        shapes |= _norm(name, width)
    shapes["type_embedding.weight"] = (3, width)
    for i in range(head.routing_layers):
        layer = f"evidence_layers.{i}."
        for name in ("query_norm", "memory_norm", "feedforward_norm"):
            shapes |= _norm(layer + name, width)
        shapes |= _attention(layer + "attention.", width)
        shapes |= _product(layer + "feedforward.0", width, head.feedforward)
        shapes |= _product(layer + "feedforward.3", head.feedforward, width)
    for i in range(head.layers):
        layer = f"layers.{i}."
        for name in ("norm1", "norm2", "norm3"):
            shapes |= _norm(layer + name, width)
        for name in ("self_attn.", "multihead_attn."):
            shapes |= _attention(layer + name, width)
        shapes |= _product(layer + "linear1", width, head.feedforward)
        shapes |= _product(layer + "linear2", head.feedforward, width)
    shapes |= _product("residual_scorer.0", 4 * width, width)
    shapes |= _product("residual_scorer.3", width, 1)
    return shapes | dict.fromkeys(("prior_logit_scale", "joint_logit_scale", "residual_gate"), ())


def refuse_other(
    found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Nothing if exactly the wanted tensors are there, each in its shape.

    Raises:
        CheckpointError: names the first that is missing, unknown or misshapen.
    """
    for problem, names in (
        ("is missing", wanted.keys() - found.keys()),
        ("is unknown", found.keys() - wanted.keys()),
    ):
        if names:
            raise CheckpointError(f"{where}: the tensor '{min(names)}' {problem}{_more(names)}")
    for name, shape in wanted.items():
        if found[name] != shape:
            raise CheckpointError(
                f"{where}: the tensor '{name}' is {_of(found[name])}, not {_of(shape)}"
            )


_PROJECTIONS = (
    "memory_projection",
    "question_projection",
    "option_question_projection",
    "global_projection",
    "option_context_projection",
    "option_lexical_projection",
)


def _full_layer(text: Text) -> Shapes:
    wide, narrow = text.heads * text.head_dim, text.kv_heads * text.head_dim
    return _every_layer(text) | {
        "self_attn.q_proj.weight": (2 * wide, text.hidden),
        "self_attn.k_proj.weight": (narrow, text.hidden),
        "self_attn.v_proj.weight": (narrow, text.hidden),
        "self_attn.o_proj.weight": (text.hidden, wide),
        "self_attn.q_norm.weight": (text.head_dim,),
        "self_attn.k_norm.weight": (text.head_dim,),
    }


def _linear_layer(text: Text) -> Shapes:
    values = text.value_heads * text.value_dim
    return _every_layer(text) | {
        "linear_attn.in_proj_qkv.weight": (text.channels, text.hidden),
        "linear_attn.in_proj_z.weight": (values, text.hidden),
        "linear_attn.in_proj_a.weight": (text.value_heads, text.hidden),
        "linear_attn.in_proj_b.weight": (text.value_heads, text.hidden),
        "linear_attn.conv1d.weight": (text.channels, 1, text.kernel),
        "linear_attn.A_log": (text.value_heads,),
        "linear_attn.dt_bias": (text.value_heads,),
        "linear_attn.norm.weight": (text.value_dim,),
        "linear_attn.out_proj.weight": (text.hidden, values),
    }


def _every_layer(text: Text) -> Shapes:
    return {
        "input_layernorm.weight": (text.hidden,),
        "post_attention_layernorm.weight": (text.hidden,),
        "mlp.gate_proj.weight": (text.intermediate, text.hidden),
        "mlp.up_proj.weight": (text.intermediate, text.hidden),
        "mlp.down_proj.weight": (text.hidden, text.intermediate),
    }


def _norm(name: str, size: int) -> Shapes:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def _product(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _attention(prefix: str, width: int) -> Shapes:
    inner = {f"{prefix}in_proj_weight": (3 * width, width), f"{prefix}in_proj_bias": (3 * width,)}
    return inner | _product(f"{prefix}out_proj", width, width)


def _more(names: Iterable[str]) -> str:
    others = len(list(names)) - 1
    return f", and {others} more" if others else ""


def _of(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a scalar"
