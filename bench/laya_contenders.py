"""Who answers the same inquiries: this engine in two precisions, the reference package twice."""

import dataclasses
import importlib
import importlib.util
import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.contract import Choice, Inquiry, Noul, Question, Score
from engines.laya.artifact import artifact, imported
from engines.laya.checkpoint import load
from engines.laya.engine import LayaEngine
from engines.laya.settings import LayaSettings

Ask = Callable[[Inquiry], int]
"""Answers an inquiry; the tokens it read."""

_WORDS = [
    *["invoice", "card", "refund", "march", "please", "account", "order"],
    *["the", "of", "and", "is", "we", "was", "twice", "late"],
]


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those that are compared."""

    name: str
    ask: Ask


def contenders(path: Path) -> dict[str, Contender]:
    """Everybody that can be had here, this engine's fp32 first."""
    found = {f"tiergate {p}": _own(path, p) for p in ("fp32", "int8")}
    if importlib.util.find_spec("laya") and importlib.util.find_spec("torch"):
        found["laya (torch eager)"] = _eager(path)
        found["laya ONNXAgent"] = _onnx_agent(path)
    return {name: Contender(name, ask) for name, ask in found.items()}


def inquiry(engine: LayaEngine, length: int, questions: int = 1, seed: int = 0) -> Inquiry:
    """An inquiry whose rows have `length` tokens each, or a few fewer with several questions."""
    draw = random.Random(seed)
    asked = {f"q{i}": _question(i) for i in range(questions)}
    words = draw.choices(_WORDS, k=length * 2)
    low, high = 0, len(words)
    while low < high:  # the most words that fit
        middle = (low + high + 1) // 2
        fits = _longest(engine, Inquiry(" ".join(words[:middle]), asked)) <= length
        low, high = (middle, high) if fits else (low, middle - 1)
    return Inquiry(" ".join(words[:low]), asked)


def _longest(engine: LayaEngine, one: Inquiry) -> int:
    return max(piece.tokens for piece in engine.prepare(one))


def _question(i: int) -> Question:
    kinds: list[Question] = [
        Choice({"billing": None, "technical": None, "other": None}, f"Which team, case {i}?"),
        Noul(f"Is it urgent, case {i}?", true="now", false="later"),
        Score(["low", "high"], f"How bad, case {i}?"),
    ]
    return kinds[i % len(kinds)]


def open_engine(path: Path, precision: str, **options: object) -> LayaEngine:
    """This engine on the checkpoint, for any text and up to 512 tokens per row."""
    settings = LayaSettings(path, language="any", max_tokens=1024)
    changed = {"precision": precision, **options}
    return LayaEngine(dataclasses.replace(settings, **changed))  # type: ignore[arg-type]


def _own(path: Path, precision: str) -> Ask:
    engine = open_engine(path, precision)

    def ask(one: Inquiry) -> int:
        pieces = engine.prepare(one)
        for piece in pieces:
            engine.read([piece])
        return sum(piece.tokens for piece in pieces)

    return ask


def _eager(path: Path) -> Ask:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = importlib.import_module("laya").load(str(path), device="cpu")
    return _asking(agent)


def _onnx_agent(path: Path) -> Ask:
    """The package's ONNX path; it brings no graph, so it gets the one drawn here for batches."""
    checkpoint = load(path)
    graph = (artifact(checkpoint, "fp32", "batch") or imported(checkpoint, "fp32", "batch")).graph
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession

    def single(*arguments: Any, **options: Any) -> Any:
        one = options.pop("sess_options", None) or runtime.SessionOptions()
        one.intra_op_num_threads = 1
        return session(*arguments[:1], sess_options=one, **options)

    runtime.InferenceSession = single
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agent = importlib.import_module("laya").load(
                str(path), backend="onnx", onnx_path=str(graph)
            )
    finally:
        runtime.InferenceSession = session
    return _asking(agent)


def _asking(agent: Any) -> Ask:
    def ask(one: Inquiry) -> int:
        questions = {name: _definition(question) for name, question in one.questions.items()}
        tokens: int = agent.predict(one.state, questions, max_len=1024)["usage"]["input_tokens"]
        return tokens

    return ask


def _definition(question: Question) -> Mapping[str, Any]:
    """The question in Laya's own format."""
    match question:
        case Noul():
            criteria: Any = {"true": question.true, "false": question.false}
            return {"type": "noul", "instructions": question.instructions, "criteria": criteria}
        case Choice():
            criteria = dict(question.options)
            return {"type": "choice", "instructions": question.instructions, "criteria": criteria}
        case Score():
            criteria = list(question.levels)
            return {"type": "score", "instructions": question.instructions, "criteria": criteria}


def gemm(size: int, rows: int) -> Callable[[], int]:
    """A library's matrix products in this network's shapes; returns operations per call."""
    draw = np.random.default_rng(0)
    x = draw.standard_normal((rows, size), np.float32)
    weights = [
        draw.standard_normal((size, wide), np.float32) for wide in (3 * size, size, 5 * size)
    ]

    def multiply() -> int:
        for weight in weights:
            x @ weight
        return sum(2 * rows * weight.size for weight in weights)

    return multiply
