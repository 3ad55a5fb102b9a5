"""The part behind the encoder: two transformer layers, the scorer, the act head of a batch.

The last layer is computed only where it is read: at the options, and in a batch at the first
token too, which the act head sees.
"""

from onnx import TensorProto

from engines.laya.brush import MASKED, Brush

_HEAD_SIZE = 64


def draw_head(brush: Brush, hidden: str, size: int, layers: int, kinds: str = "qtype") -> None:
    """From hidden states, float32[rows, length, size], to the graph's outputs.

    `kinds` is int64[rows].
    """
    op, sketch = brush.sketch.op, brush.sketch
    kind = op("Gather", sketch.tensor("kinds", brush.read("type_emb")), kinds)
    x = op("Add", hidden, op("Unsqueeze", kind, sketch.constant((1,))))
    for j in range(layers - 1):
        x = _layer(brush, x, x, size, j)
    x = _layer(brush, x, _read_places(brush, x), size, layers - 1)
    if brush.form == "row":
        sketch.name_output(_scores(brush, x), "logits")
    else:
        _batch_outputs(brush, x)


def _layer(brush: Brush, x: str, queries: str, size: int, layer: int) -> str:
    """A pre-norm transformer layer, computed at `queries` and seeing all of `x`."""
    op, sketch, name = brush.sketch.op, brush.sketch, f"head.layers.{layer}"
    weight = brush.read(f"{name}.self_attn.in_proj_weight", "")
    offset = brush.read(f"{name}.self_attn.in_proj_bias", "")
    seen = brush.norm(x, f"{name}.norm1", biased=True)
    asked = seen if queries == x else brush.norm(queries, f"{name}.norm1", biased=True)
    query = brush.linear.draw(sketch, asked, f"{name}.query", weight[:size], offset[:size])
    both = brush.linear.draw(sketch, seen, f"{name}.both", weight[size:], offset[size:])
    key, values = sketch.ops("Split", 2, both, axis=-1, num_outputs=2)
    bias = brush.padding(queries)
    heard = brush.attend(query, key, values, size // _HEAD_SIZE, bias)
    x = op("Add", queries, brush.product(heard, f"{name}.self_attn.out_proj", biased=True))
    y = brush.norm(x, f"{name}.norm2", biased=True)
    wide = op("Relu", brush.product(y, f"{name}.linear1", biased=True))
    return op("Add", x, brush.product(wide, f"{name}.linear2", biased=True))


def _read_places(brush: Brush, x: str) -> str:
    """float32[rows, places, size]: the options', in a batch after the first token's."""
    op, constant = brush.sketch.op, brush.sketch.constant
    if brush.form == "row":
        return op("Gather", x, "marker_pos", axis=1)
    rows = op("Shape", "marker_pos", start=0, end=1)
    first = op("Expand", constant(0), op("Concat", rows, constant((1,)), axis=0))
    places = op("Concat", first, "marker_pos", axis=1)
    return op("GatherND", x, op("Unsqueeze", places, constant((2,))), batch_dims=1)


def _scores(brush: Brush, x: str) -> str:
    """One number per option, float32[rows, options]."""
    y = brush.product(brush.norm(x, "scorer.0", biased=True), "scorer.1", biased=True)
    scores = brush.product(brush.sketch.op("Gelu", y), "scorer.3", biased=True)
    return brush.sketch.op("Squeeze", scores, brush.sketch.constant((2,)))


def _batch_outputs(brush: Brush, x: str) -> None:
    op, sketch = brush.sketch.op, brush.sketch
    scores = _scores(brush, brush.part(x, 1, 2**31 - 1, 1))
    logits = op("Where", "marker_mask", scores, sketch.constant(MASKED))
    sketch.name_output(logits, "logits")
    first = op("Gather", x, sketch.constant(0), axis=1)
    y = op("Concat", first, *_distribution(brush, logits), axis=1)
    y = op("Gelu", brush.product(y, "act_head.0", biased=True))
    sketch.name_output(brush.product(y, "act_head.2", biased=True), "act_logits")


def _distribution(brush: Brush, logits: str) -> list[str]:
    """What the act head knows of the answer, each float32[rows, 1]: the best probability, its
    lead, the entropy over ln k, and k / 255."""
    op, constant = brush.sketch.op, brush.sketch.constant
    p = op("Softmax", logits, axis=1)
    nothing = op("Mul", brush.part(p, 0, 1, 1), constant(0.0))
    best, _ = brush.sketch.ops("TopK", 2, op("Concat", p, nothing, axis=1), constant((2,)), axis=1)
    first, second = brush.sketch.ops("Split", 2, best, axis=1, num_outputs=2)
    logs = op("Log", op("Max", p, constant(1e-9)))
    entropy = op("Neg", op("ReduceSum", op("Mul", p, logs), constant((1,))))
    count = op("ReduceSum", op("Cast", "marker_mask", to=TensorProto.FLOAT), constant((1,)))
    options = op("Max", count, constant(2.0))
    return [
        first,
        op("Sub", first, second),
        op("Div", entropy, op("Log", options)),
        op("Div", options, constant(255.0)),
    ]
