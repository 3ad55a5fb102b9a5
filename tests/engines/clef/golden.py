"""What the reference says about a tiny random checkpoint: inputs, ids, spans, logits.

The checkpoint has Clef-flash's layout and every part of its architecture, at a hundred-thousandth
of its size.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engines.clef.checkpoint import Checkpoint
from engines.clef.definition import wordings
from engines.clef.engine import NEUTRAL, ClefEngine
from engines.clef.images import picture, sight
from engines.clef.prompt import Limits, Picture, Prompt, Subject, prompt
from engines.clef.rendering import rendered
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens
from engines.contract import Asset

torch.set_num_threads(1)  # more would wait for each other on a busy machine

GOLDENS = Path(__file__).parents[2] / "data/clef"
TINY = GOLDENS / "tiny-clef"


@dataclass(frozen=True, slots=True)
class Case:
    """One request that the reference answered."""

    name: str
    request: dict[str, Any]
    ids: list[int]
    questions: list[dict[str, Any]]
    fp32: list[list[float]]
    bf16: list[list[float]]
    limits: Limits
    images: int

    def prompt(self, tokens: Tokens, pictures: Sequence[Picture] = ()) -> Prompt:
        """Our prompt for it."""
        state = tokens.state(rendered(self.request["state"]), self.limits.max_tokens)
        subject = Subject(state, tuple(pictures[: self.images]))
        return prompt(tokens, subject, wordings(self.request["questions"]), self.limits)


def cases() -> list[Case]:
    """Those without images."""
    return [_case(entry, entry["request"], 0) for entry in _tree("golden.json")["cases"]]


def image_cases() -> list[Case]:
    """Those with images that callers may send; the file's others are videos and paths."""
    requests = {case.name: case.request for case in cases()}
    found = []
    for entry in _tree("golden_images.json")["cases"]:
        if "image_grid_thw" in entry["media_keys"]:
            long = "max_length" in entry["opts"]
            request = requests["long_state_1200" if long else "basic"]
            found.append(_case(entry, request, len(entry["grid"])))
    return found


def refusals() -> list[dict[str, Any]]:
    """Requests that the reference refused, or should have."""
    found: list[dict[str, Any]] = _tree("golden.json")["errors"]
    return found


def pictures(checkpoint: Checkpoint) -> list[Picture]:
    """The images of the image cases, as the vision tower takes them."""
    assert checkpoint.vision is not None
    how = sight(checkpoint.directory, checkpoint.vision)
    return [picture(asset(i), how) for i in range(2)]


def asset(number: int) -> Asset:
    """An image as a caller sends it."""
    return Asset("image/png", (GOLDENS / f"images/img{number}.png").read_bytes())


def tiny_engine(*, neutral: str = NEUTRAL, path: Path = TINY, **options: Any) -> ClefEngine:
    """An engine on the tiny checkpoint, on the CPU in fp32 unless told otherwise."""
    plain: dict[str, Any] = {"device": "cpu", "precision": "fp32", "threads": 1}
    return ClefEngine(ClefSettings(path, **(plain | options)), neutral=neutral)


def furthest(found: Sequence[Sequence[float]], wanted: Sequence[Sequence[float]]) -> float:
    """The largest difference between two requests' logits."""
    pairs = zip(found, wanted, strict=True)
    return max(abs(a - b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True))


def _tree(name: str) -> Any:
    return json.loads((GOLDENS / name).read_text("utf-8"))


def _case(entry: dict[str, Any], request: dict[str, Any], images: int) -> Case:
    options = entry["opts"]
    return Case(
        entry["name"],
        request,
        entry["input_ids"],
        entry["questions"],
        entry["logits_fp32"],
        entry.get("logits_bf16", []),
        Limits(options.get("max_length", 16_384), options.get("max_state_tokens"), truncate=True),
        images,
    )
