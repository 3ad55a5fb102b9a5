"""Examples whose vectors are drawn instead of embedded: fitting without an encoder."""

from collections.abc import Sequence

import numpy as np

from engines.contract import Choice, Question, label_count
from engines.minilm.sentences import WIDTH
from gateway.fitting.examples import Examples
from gateway.fitting.vectors import Vectors

TOPICS = Choice({"billing": None, "login": None, "other": None}, "What is it about?")


def drawn(
    question: Question = TOPICS,
    rows: int = 400,
    *,
    spread: float = 1.0,
    labels: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[Examples, Vectors]:
    """Examples around one centre per label; the wider the spread, the more of them mingle."""
    draw = np.random.default_rng(seed)
    many = label_count(question)
    centres = draw.normal(size=(many, WIDTH)) / np.sqrt(WIDTH)
    said = draw.integers(many, size=rows).tolist() if labels is None else list(labels)
    noise = draw.normal(size=(len(said), WIDTH)) * spread / np.sqrt(WIDTH)
    points = centres[said] + noise
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    texts = [f"text {seed} {n}" for n in range(len(said))]
    vectors = {t: v.astype(np.float32) for t, v in zip(texts, points, strict=True)}
    return Examples("topic", question, texts, said), vectors
