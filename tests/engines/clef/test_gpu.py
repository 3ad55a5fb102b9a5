"""On a GPU: the reference's answers, by graphs, fused kernels, chunks and 8 bits; `-m gpu`."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engines.clef.attention import attended
from engines.clef.checkpoint import Checkpoint
from engines.clef.delta import Signals, delta_rule
from engines.clef.eight import EightBitLinear
from engines.clef.kernels import (
    convolved,
    fused_convolve,
    fused_rule,
    trusted_convolve,
    trusted_rule,
)
from engines.clef.model import opened
from engines.clef.plan import FLASH, GIB, token_bytes
from engines.clef.prefixes import Prefixes
from engines.clef.quantised import multiplies
from engines.clef.reader import Logits, Reader
from engines.clef.room import unlimited
from engines.clef.settings import ClefSettings, Precision
from engines.clef.tokens import Tokens
from engines.contract import Busy, Inquiry, Noul

from .golden import TINY, cases, furthest, tiny_engine
from .test_waiting import prompt
from .unreal import unreal_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.filterwarnings("ignore"),  # of drivers, compilers and other projects' kernels
]
CASES = cases()
GPU = torch.device("cuda")


@pytest.fixture(autouse=True)
def own_memory() -> Iterator[None]:
    """Nothing of one test stays for the next."""
    yield
    torch.cuda.empty_cache()


def reader(checkpoint: Checkpoint, precision: Precision, **options: object) -> Reader:
    settings = ClefSettings(TINY, device="cuda", precision=precision, **options)  # type: ignore[arg-type]
    return Reader(opened(checkpoint, settings), settings, Prefixes(GIB))


def moved(found: list[Logits]) -> list[float]:
    """How far each question's probabilities are from the reference's in fp32."""
    return [
        float((torch.tensor(own).softmax(0) - torch.tensor(plain).softmax(0)).abs().max())
        for ours, case in zip(found, CASES, strict=True)
        for own, plain in zip(ours, case.fp32, strict=True)
    ]


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix_from_tokens": 1, "cache_from_tokens": 1},
        {"chunk_tokens": 100, "prefix_from_tokens": 10**6, "cache_from_tokens": 10**6},
        {"deterministic": True},
        {"tables": "host"},
    ],
    ids=str,
)
def test_fp32_gives_the_references_logits(
    checkpoint: Checkpoint, tokens: Tokens, options: dict[str, object], graphs: bool
) -> None:
    asked = [case.prompt(tokens) for case in CASES]
    reading = reader(checkpoint, "fp32", graphs=graphs, **options)

    for _ in range(2):
        for ours, case in zip(reading.logits(asked), CASES, strict=True):
            assert furthest(ours, case.fp32) < 1e-4, case.name


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("chunk_tokens", [2048, 100])
def test_bf16_stays_within_the_noise_of_the_reference(
    checkpoint: Checkpoint, tokens: Tokens, graphs: bool, chunk_tokens: int
) -> None:
    asked = [case.prompt(tokens) for case in CASES]

    far = moved(reader(checkpoint, "bf16", graphs=graphs, chunk_tokens=chunk_tokens).logits(asked))

    assert max(far) < 0.08
    assert sum(far) / len(far) < 0.03


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("precision", ["int8", "fp8"])
def test_eight_bits_stay_within_what_was_measured_on_a_cpu(
    checkpoint: Checkpoint, tokens: Tokens, precision: Precision, graphs: bool
) -> None:
    asked = [case.prompt(tokens) for case in CASES]

    far = moved(reader(checkpoint, precision, graphs=graphs).logits(asked))

    assert max(far) < 0.35
    assert sum(far) / len(far) < 0.12


def signals(rows: int, tokens: int) -> tuple[Signals, Tensor]:
    draw = torch.Generator(GPU).manual_seed(tokens)
    shape = (rows, tokens, FLASH.value_heads)

    def normal(*sizes: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.randn(*sizes, generator=draw, device=GPU, dtype=dtype)

    query, key, value = (normal(*shape, FLASH.key_dim) for _ in "qkv")
    decay = -normal(*shape, dtype=torch.float32).abs()
    memory = normal(1, FLASH.value_heads, FLASH.key_dim, FLASH.value_dim, dtype=torch.float32)
    return Signals(query, key, value, decay, normal(*shape).sigmoid()), memory.expand(
        rows, -1, -1, -1
    )


@pytest.mark.parametrize("tokens", [1, 5, 334, 2048])
def test_products_in_fp8_are_those_of_the_rounded_numbers(tokens: int) -> None:
    if not multiplies(GPU):
        pytest.skip("this card does not multiply in FP8")
    draw = torch.Generator().manual_seed(tokens)
    linear = EightBitLinear(torch.randn(1024, 512, generator=draw).to(torch.bfloat16))
    x = torch.randn(1, tokens, 512, generator=draw).to(torch.bfloat16)
    x[:, -1] = 0
    expected = linear(x)

    found = linear.to(GPU)(x.to(GPU)).cpu()

    assert found.isfinite().all()
    assert (found - expected).norm() <= 0.02 * expected.norm()


@pytest.mark.parametrize(("rows", "tokens"), [(1, 1), (1, 64), (3, 65), (1, 2048)])
def test_the_fused_rule_is_the_plain_one_at_full_size(rows: int, tokens: int) -> None:
    if fused_rule() is None:
        pytest.skip("flash-linear-attention is not installed")
    rule = trusted_rule(fused_rule, GPU)
    assert rule is not delta_rule
    asked, memory = signals(rows, tokens)

    output, after = rule(asked, memory)

    expected, left = delta_rule(asked, memory)
    assert (output.float() - expected.float()).norm() < 0.03 * expected.float().norm()
    assert (after - left).norm() < 0.03 * left.norm()


@pytest.mark.parametrize("tokens", [1, 5, 64, 1000])
def test_the_fused_convolution_is_the_plain_one_at_full_size(tokens: int) -> None:
    if fused_convolve() is None:
        pytest.skip("causal-conv1d is not installed")
    convolve = trusted_convolve(fused_convolve, GPU)
    assert convolve is not convolved
    inputs = torch.randn(2, 3 + tokens, FLASH.channels, device=GPU, dtype=torch.bfloat16)
    weight = torch.randn(FLASH.channels, 1, FLASH.kernel, device=GPU, dtype=torch.bfloat16)

    assert torch.allclose(convolve(inputs, weight), convolved(inputs, weight), atol=0.05, rtol=0.02)


@pytest.mark.parametrize(("tokens", "keys"), [(100, 100), (100, 4100), (1, 300)])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_over_a_long_past_holds_no_scores(tokens: int, keys: int, masked: bool) -> None:
    draw = torch.Generator(GPU).manual_seed(1)
    query, key, value = (
        torch.randn(2, heads, size, 256, generator=draw, device=GPU, dtype=torch.bfloat16)
        for heads, size in ((16, tokens), (4, keys), (4, keys))
    )
    seen = torch.ones(tokens, keys, dtype=torch.bool, device=GPU).tril(keys - tokens)
    mask = seen[None, None].expand(2, -1, -1, -1) if masked else None
    expected = attended(query.float(), key.float(), value.float(), seen[None, None])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()

    found = attended(query, key, value, mask)

    taken = torch.cuda.max_memory_allocated() - before
    assert (found.float() - expected).norm() < 0.01 * expected.norm()
    scores = 2 * 16 * tokens * keys * 4
    assert tokens < 100 or keys < 1000 or taken < scores + 8 * key.nbytes
    assert masked or taken < 4 * query.nbytes + (1 << 20)


def test_a_chunk_takes_no_more_memory_than_planned() -> None:
    text = replace(FLASH, linear=(True, True, True, False))
    tokens = 2048
    model = unreal_model(text)
    real = model.backbone.to_empty(device=GPU)
    for parameter in real.parameters():
        parameter.data.normal_(0, 0.02)
    settings = ClefSettings(TINY, device="cuda", graphs=False, chunk_tokens=tokens)
    there = replace(
        model,
        backbone=real,
        device=GPU,
        head=model.head.to_empty(device=GPU),
        embeddings=replace(model.embeddings, rows=_rows(text.hidden), device=GPU),
        words=replace(model.words, rows=_rows(text.hidden), device=GPU),
    )
    reading = Reader(there, settings, Prefixes(0), room=unlimited(settings))
    reading.logits([prompt(tokens - 84, 84)])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()

    reading.logits([prompt(tokens - 84, 84)])

    taken = torch.cuda.max_memory_allocated() - before
    assert taken < 1.1 * tokens * token_bytes(text, "bf16") + (64 << 20)


def _rows(hidden: int) -> Tensor:
    return torch.randn(4096, hidden, device=GPU, dtype=torch.bfloat16) * 0.02


def test_memory_that_is_really_short_is_survived() -> None:
    engine = tiny_engine(device="cuda", precision="bf16", threads=0)
    pieces = engine.prepare(Inquiry("word " * 2000, {f"q{i}": Noul(f"{i}?") for i in range(8)}))
    torch.cuda.empty_cache()
    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (2 << 20)) / total)

    try:
        with suppress(Busy):  # or it is read in halves: that depends on the card
            engine.read(pieces)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)

    assert engine.health.counts["out of memory"] > 0
    assert engine.health.state == "ready"
    assert len(engine.read(pieces)) == 8
    engine.close()


def test_an_idle_engine_gives_its_memory_back_and_comes_again() -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    engine = tiny_engine(device="cuda", precision="bf16", threads=0, keep_alive_s=3600.0)
    pieces = engine.prepare(Inquiry("state", {"q": Noul("?")}))
    first = engine.read(pieces)[0]["q"].log_weights
    assert torch.cuda.memory_reserved() > before

    engine.close()

    assert torch.cuda.memory_reserved() <= before + (256 << 20)
    again = tiny_engine(device="cuda", precision="bf16", threads=0)
    assert again.read(again.prepare(Inquiry("state", {"q": Noul("?")})))[0]["q"].log_weights == (
        pytest.approx(first, abs=0.05)
    )
    again.close()
