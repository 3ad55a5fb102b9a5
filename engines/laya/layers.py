"""The shape of a Laya network: which tensors a checkpoint must hold, and no others."""

from collections.abc import Iterator, Mapping

from engines.laya.checkpoint import Checkpoint, Encoder
from engines.laya.tensors import CheckpointError

_ACT_HIDDEN = 256
_ACT_FACTS = 4


def expected(checkpoint: Checkpoint, encoder: Encoder) -> dict[str, tuple[int, ...]]:
    """Tensor name → shape, in PyTorch's [out, in] order."""
    return dict(
        [
            *_encoder(encoder),
            *_head(encoder.hidden, checkpoint.head_layers),
            *_outputs(encoder.hidden, checkpoint.acts),
        ]
    )


def refuse_other(
    shapes: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Nothing if the file holds exactly the wanted tensors.

    Raises:
        CheckpointError: naming the first tensor that is missing, misshapen or too many.
    """
    for name, shape in wanted.items():
        if name not in shapes:
            raise CheckpointError(f"{where}: tensor '{name}' is missing")
        if shapes[name] != shape:
            raise CheckpointError(
                f"{where}: tensor '{name}' is {list(shapes[name])}, but {list(shape)} is needed"
            )
    for name in shapes:
        if name not in wanted:
            raise CheckpointError(f"{where}: tensor '{name}' belongs to no Laya checkpoint")


def _encoder(encoder: Encoder) -> Iterator[tuple[str, tuple[int, ...]]]:
    d, wide = encoder.hidden, encoder.intermediate
    yield "encoder.embeddings.tok_embeddings.weight", (encoder.vocabulary, d)
    yield "encoder.embeddings.norm.weight", (d,)
    for i in range(encoder.layers):
        layer = f"encoder.layers.{i}"
        if i:
            yield f"{layer}.attn_norm.weight", (d,)
        yield f"{layer}.attn.Wqkv.weight", (3 * d, d)
        yield f"{layer}.attn.Wo.weight", (d, d)
        yield f"{layer}.mlp_norm.weight", (d,)
        yield f"{layer}.mlp.Wi.weight", (2 * wide, d)
        yield f"{layer}.mlp.Wo.weight", (d, wide)
    yield "encoder.final_norm.weight", (d,)


def _head(d: int, layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "type_emb.weight", (3, d)
    for j in range(layers):
        layer = f"head.layers.{j}"
        yield f"{layer}.self_attn.in_proj_weight", (3 * d, d)
        yield f"{layer}.self_attn.in_proj_bias", (3 * d,)
        yield from _biased(f"{layer}.self_attn.out_proj", (d, d))
        yield from _biased(f"{layer}.linear1", (4 * d, d))
        yield from _biased(f"{layer}.linear2", (d, 4 * d))
        yield from _biased(f"{layer}.norm1", (d,))
        yield from _biased(f"{layer}.norm2", (d,))


def _outputs(d: int, acts: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from _biased("scorer.0", (d,))
    yield from _biased("scorer.1", (d, d))
    yield from _biased("scorer.3", (1, d))
    yield from _biased("act_head.0", (_ACT_HIDDEN, d + _ACT_FACTS))
    yield from _biased("act_head.2", (acts, _ACT_HIDDEN))
    yield "temperature", (3,)


def _biased(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]
