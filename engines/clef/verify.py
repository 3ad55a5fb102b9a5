"""Is this checkpoint read correctly here? Golden requests against the weights in a directory.

What must hold for any weights is checked on the device that is to serve; against the decoder of
`transformers`, where that is installed and fits beside it.
"""

import importlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import torch

from engines.clef import rendering
from engines.clef.checkpoint import Checkpoint, load
from engines.clef.definition import wordings
from engines.clef.failures import relieve
from engines.clef.model import Model, opened
from engines.clef.plain import plain_hidden
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Limits, Prompt, Subject, prompt
from engines.clef.pull import LISTING
from engines.clef.reader import Logits, Reader
from engines.clef.settings import ClefSettings, Precision
from engines.clef.tokens import Tokens
from engines.clef.weights import Progress
from engines.hub import MANIFEST, HubError, recheck

_DRIFT: dict[str, float] = {"fp32": 1e-4, "bf16": 0.05}
"""Most that a probability may move by what must not matter: rounding of other shapes."""
_HIDDEN_DRIFT: dict[str, float] = {"fp32": 1e-3, "bf16": 0.08}
"""Most that hidden states may differ from those of `transformers`, relative to their size."""
_MARKED = "नमस्ते दुनिया"

Status = Literal["ok", "failed", "measured", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    check: str
    status: Status
    detail: str


def findings(
    path: Path,
    *,
    device: str = "cpu",
    max_delta: float | None = None,
    progress: Progress | None = None,
) -> Iterator[Finding]:
    """What is found out about the checkpoint in `path`, one check after the other.

    `max_delta` is how far a probability of 8-bit weights may be from the plain one's; without it
    the distance is reported only. `progress` is told how far loading is, each time.

    Raises:
        CheckpointError: it cannot be loaded at all.
        DeviceError: the device is missing or too small.
    """
    precision: Precision = "fp32" if device == "cpu" else "bf16"
    settings = ClefSettings(path, device=device, precision=precision, max_images=0, graphs=False)
    checkpoint = load(path, images=False)
    yield _origin(path)
    tokens = Tokens(checkpoint, harden=False)
    asked = _prompts(tokens)
    yield _spans_are_where_they_must_be(checkpoint, tokens, asked)
    yield _marks_stay(checkpoint)
    model = opened(checkpoint, settings, progress)
    yield Finding("load", "ok", f"{path.name} on {device} in {precision}: {len(asked)} prompts")
    plain = _reader(model, settings).logits(asked)
    yield _like_transformers(checkpoint, model, asked[0])
    for check, options in (_INDIFFERENT | _recorded(device)).items():
        yield _indifferent(check, _reader(model, replace(settings, **options)), asked, plain)
    del model
    eight: tuple[Precision, ...] = ("int8", "fp8")
    for small in eight:
        relieve()  # a card that holds one model need not hold two
        coarse = replace(settings, precision=small)
        check = f"{small} against {precision}"
        if importlib.util.find_spec("torchao") is None:
            yield Finding(check, "skipped", "torchao is not installed")
            continue
        found = _reader(opened(checkpoint, coarse, progress), coarse).logits(asked)
        yield _eight_bits(check, _moved(found, plain), max_delta)


_INDIFFERENT: dict[str, dict[str, Any]] = {
    "alone and in company": {"deterministic": True},
    "whole and in chunks": {
        "chunk_tokens": 64,
        "cache_from_tokens": 1_000_000,
        "prefix_from_tokens": 1_000_000,
    },
    "on a remembered state": {"prefix_from_tokens": 1, "cache_from_tokens": 1},
}


def _recorded(device: str) -> dict[str, dict[str, Any]]:
    """Where kernels can be recorded, that too."""
    return {"recorded and replayed": {"graphs": True}} if device.startswith("cuda") else {}


def _origin(path: Path) -> Finding:
    if not (path / MANIFEST).is_file():
        return Finding("files", "skipped", f"no {MANIFEST}: nobody knows what they must be")
    try:
        source = recheck(None, LISTING, path)
    except HubError as error:
        return Finding("files", "failed", str(error))
    return Finding("files", "ok", f"every byte as pulled: {source.repository} {source.revision}")


def _prompts(tokens: Tokens) -> list[Prompt]:
    text = (files("engines.clef") / "verify_requests.json").read_text("utf-8")
    limits = Limits(16_384, None, truncate=False)
    found = []
    for request in json.loads(text):
        state = tokens.state(rendering.rendered(request["state"]), limits.max_tokens)
        questions = wordings(request["questions"])
        found.append(prompt(tokens, Subject(state, ()), questions, limits))
    return found


def _spans_are_where_they_must_be(
    checkpoint: Checkpoint, tokens: Tokens, asked: Sequence[Prompt]
) -> Finding:
    own = checkpoint.tokenizer()
    for one in asked:
        text = own.decode(list(one.ids), skip_special_tokens=False)
        if not (text.startswith(rendering.PREFIX) and text.endswith(rendering.SUFFIX)):
            return Finding("prompts", "failed", "a prompt does not begin and end as it must")
        for question in one.questions:
            for begin, end in question.options:
                said = own.decode(list(one.schema[begin:end]), skip_special_tokens=False)
                if json.loads(said).keys() - {"option_id", "description"}:
                    return Finding("prompts", "failed", "a span is no option")
    sizes = f"prefix {len(tokens.prefix)}, suffix {len(tokens.suffix)} tokens"
    return Finding("prompts", "ok", f"{sizes}; Clef-flash's own tokenizer has 36 and 18")


def _marks_stay(checkpoint: Checkpoint) -> Finding:
    cutter = checkpoint.tokenizer().pre_tokenizer
    pieces = len(cutter.pre_tokenize_str(_MARKED)) if cutter is not None else 0
    status: Status = "ok" if pieces == len(_MARKED.split()) else "failed"
    return Finding("combining marks", status, f"'{_MARKED}' is cut into {pieces} pieces")


def _indifferent(
    check: str, reader: Reader, asked: Sequence[Prompt], plain: Sequence[Logits]
) -> Finding:
    """Whether another way to compute the same gives the same."""
    moved, flips, count = _moved(reader.logits(asked), plain)
    bound = _DRIFT["fp32" if reader.dtype == torch.float32 else "bf16"]
    status: Status = "ok" if moved <= bound else "failed"
    return Finding(check, status, f"max |Δp| {moved:.1e}, other answer in {flips} of {count}")


def _like_transformers(checkpoint: Checkpoint, model: Model, one: Prompt) -> Finding:
    check = "transformers' decoder"
    if importlib.util.find_spec("transformers") is None:
        return Finding(check, "skipped", "transformers is not installed")
    if model.device.type == "cuda":
        taken = sum(p.nbytes for p in model.backbone.parameters())
        if torch.cuda.mem_get_info(model.device)[0] < 1.2 * taken:
            return Finding(check, "skipped", "no room for a second copy of the weights")
    apart = plain_hidden(checkpoint, model, one)
    bound = _HIDDEN_DRIFT["fp32" if model.dtype == torch.float32 else "bf16"]
    status: Status = "ok" if apart <= bound else "failed"
    return Finding(check, status, f"hidden states of {one.tokens} tokens differ by {apart:.1e}")


def _eight_bits(check: str, moved: tuple[float, int, int], max_delta: float | None) -> Finding:
    most, flips, count = moved
    detail = f"max |Δp| {most:.4f}, other answer in {flips} of {count} questions"
    if max_delta is None:
        return Finding(check, "measured", detail)
    return Finding(check, "failed" if most > max_delta else "ok", detail)


def _reader(model: Model, settings: ClefSettings) -> Reader:
    return Reader(model, settings, Prefixes(settings.prefix_cache_bytes))


def _moved(found: Sequence[Logits], plain: Sequence[Logits]) -> tuple[float, int, int]:
    """Largest change of a probability, changed answers, and questions compared."""
    worst, flips, count = 0.0, 0, 0
    for ours, theirs in zip(found, plain, strict=True):
        for own, other in zip(ours, theirs, strict=True):
            p, q = torch.tensor(own).softmax(0), torch.tensor(other).softmax(0)
            worst = max(worst, float((p - q).abs().max()))
            flips += int(p.argmax() != q.argmax())
            count += 1
    return worst, flips, count
