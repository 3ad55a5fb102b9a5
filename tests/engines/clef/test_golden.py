"""Prompts and logits are those of the reference, on every request that was recorded."""

import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file

from engines.clef.backbone import stretch_of
from engines.clef.checkpoint import Checkpoint
from engines.clef.layers import turn
from engines.clef.model import Model, opened
from engines.clef.positions import after, positions_of
from engines.clef.prefixes import Prefixes
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens

from .conftest import Reads
from .golden import GOLDENS, TINY, Case, cases, furthest, image_cases, pictures

CASES = cases()
IMAGES = image_cases()
named = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
shown = pytest.mark.parametrize("case", IMAGES, ids=lambda case: case.name)


@named
def test_ids_and_spans_are_those_of_the_reference(case: Case, tokens: Tokens) -> None:
    prompt = case.prompt(tokens)

    begin = len(prompt.opening.ids)
    assert list(prompt.ids) == case.ids
    for ours, theirs in zip(prompt.questions, case.questions, strict=True):
        assert ours.name == theirs["id"]
        assert ours.type == theirs["type"]
        assert [begin + at for at in ours.question] == theirs["span"]
        assert [[begin + low, begin + high] for low, high in ours.options] == theirs["option_spans"]


@named
def test_logits_are_those_of_the_reference(case: Case, tokens: Tokens, reads: Reads) -> None:
    found = reads().logits([case.prompt(tokens)])[0]

    assert furthest(found, case.fp32) < 1e-4


def test_all_requests_in_one_call_read_as_each_by_itself(tokens: Tokens, reads: Reads) -> None:
    found = reads().logits([case.prompt(tokens) for case in CASES])

    for ours, case in zip(found, CASES, strict=True):
        assert furthest(ours, case.fp32) < 1e-4, case.name


@pytest.mark.parametrize("chunk_tokens", [64, 100, 333])
@pytest.mark.parametrize("prefix_from_tokens", [1, 1_000_000])
def test_chunks_change_nothing(
    tokens: Tokens, reads: Reads, chunk_tokens: int, prefix_from_tokens: int
) -> None:
    reader = reads(
        chunk_tokens=chunk_tokens,
        prefix_from_tokens=prefix_from_tokens,
        cache_from_tokens=prefix_from_tokens,
    )
    for case in CASES:
        if case.name in ("basic", "long_state_1200", "many_options_60"):
            assert furthest(reader.logits([case.prompt(tokens)])[0], case.fp32) < 1e-4


def test_bf16_stays_within_the_noise_of_the_reference(
    checkpoint: Checkpoint, tokens: Tokens
) -> None:
    settings = ClefSettings(TINY, device="cpu", precision="bf16")
    reader = Reader(opened(checkpoint, settings), settings, Prefixes(0))
    moved = []
    for ours, case in zip(reader.logits([c.prompt(tokens) for c in CASES]), CASES, strict=True):
        for own, plain in zip(ours, case.fp32, strict=True):
            p, q = torch.tensor([own, plain]).softmax(-1)
            moved.append(float((p - q).abs().max()))

    assert max(moved) < 0.08  # the reference's own bf16 moves by up to 0.054
    assert sum(moved) / len(moved) < 0.03


def test_hidden_states_are_those_of_the_reference(model: Model, tokens: Tokens) -> None:
    recorded = load_file(GOLDENS / "golden_basic_intermediates.safetensors")
    prompt = CASES[0].prompt(tokens)
    length = prompt.tokens

    with torch.inference_mode():
        embedded = model.embeddings.of(torch.tensor([prompt.ids]))
        place = turn(model.backbone.text.rotary, after(0, length)[:, None], torch.float32)
        hidden, _ = model.backbone(embedded, stretch_of(place, [length], None), None, model.kernels)
        normed = model.head.hidden_norm(hidden)
        memory = model.head.memory(normed)[0]

    assert torch.allclose(hidden, recorded["last_hidden_state"], atol=2e-5)
    assert torch.allclose(normed, recorded["hidden_norm"], atol=2e-5)
    assert torch.allclose(memory, recorded["memory_projection"], atol=2e-5)


@shown
def test_images_read_as_the_reference_reads_them(
    case: Case, checkpoint: Checkpoint, tokens: Tokens, reads: Reads
) -> None:
    prompt = case.prompt(tokens, pictures(checkpoint))

    found = reads().logits([prompt])[0]

    assert list(prompt.ids) == case.ids
    assert furthest(found, case.fp32) < 1e-4


def test_pixels_are_those_of_the_reference_to_the_bit(checkpoint: Checkpoint) -> None:
    seen = pictures(checkpoint)
    tree = json.loads((GOLDENS / "golden_images.json").read_text("utf-8"))

    for entry in tree["cases"]:
        if "pixel_values" in entry["media_keys"]:
            content = b"".join(one.patches for one in seen[: len(entry["grid"])])
            assert hashlib.sha256(content).hexdigest() == entry["pixel_values_sha256"]


@shown
def test_tokens_of_images_stand_where_the_reference_puts_them(
    case: Case, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    tree = json.loads((GOLDENS / "golden_images.json").read_text("utf-8"))
    recorded = next(entry for entry in tree["cases"] if entry["name"] == case.name)
    opening = case.prompt(tokens, pictures(checkpoint)).opening

    positions = positions_of(opening).tolist()

    assert positions == [axis[: len(opening.ids)] for axis in recorded["position_ids"]]
