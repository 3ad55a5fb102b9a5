"""What the reference package says about two tiny random checkpoints: inputs, rows, logits."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engines.laya.artifact import Precision
from engines.laya.checkpoint import Checkpoint
from engines.laya.definition import wordings
from engines.laya.engine import LayaEngine
from engines.laya.rows import Budget, Row, Tokens
from engines.laya.settings import LayaSettings

GOLDENS = Path(__file__).parent / "goldens"
NAMES = ("tiny-english", "tiny-multilingual")


@dataclass(frozen=True, slots=True)
class Case:
    """One request that the package answered, or refused."""

    name: str
    state: Any
    questions: dict[str, Any]
    kwargs: dict[str, Any]
    rows: list[dict[str, Any]]
    result: dict[str, Any]

    def budget(self, checkpoint: Checkpoint) -> Budget:
        """The request's own limits, else the checkpoint's."""
        return Budget(
            self.kwargs.get("max_len", checkpoint.max_len),
            self.kwargs.get("head_max_len", checkpoint.head_max_len),
        )

    def encoded(self, checkpoint: Checkpoint, tokens: Tokens) -> list[Row]:
        """Our rows for its questions."""
        state, budget = tokens.state(self.state), self.budget(checkpoint)
        texts = wordings(self.state, self.questions, self.kwargs.get("min_confidence"))
        return [tokens.row(wording, state, budget) for wording in texts.values()]


def tiny_engine(precision: Precision) -> LayaEngine:
    """An engine on the tiny English checkpoint with room for every example of the laws.

    Options too: the laws write some in scripts of which the tiny tokenizer knows the bytes only.
    """
    with TemporaryDirectory() as folder:
        path = Path(shutil.copytree(GOLDENS / "tiny-english", Path(folder) / "tiny-english"))
        engine = LayaEngine(
            LayaSettings(
                path,
                precision=precision,
                language="any",
                max_tokens=8192,
                head_max_tokens=4096,
            )
        )
    desk = engine._main
    engine._main = replace(desk, budget=replace(desk.budget, option_len=512))
    return engine


def tournament_engine() -> LayaEngine:
    """The same in short rows: more than eight options meet in groups, what does not fit is cut."""
    with TemporaryDirectory() as folder:
        path = Path(shutil.copytree(GOLDENS / "tiny-english", Path(folder) / "tiny-english"))
        settings = LayaSettings(path, language="any", max_tokens=512, head_max_tokens=256)
        return LayaEngine(replace(settings, tournament=8, on_overflow="truncate"))


def cases(checkpoint: str, kind: str = "cases") -> list[Case]:
    """The answered requests, or those under `errors`."""
    tree = json.loads((GOLDENS / f"reference_{checkpoint}.json").read_text("utf-8"))
    return [
        Case(
            entry["name"],
            entry["state"],
            entry["questions"],
            entry["kwargs"],
            entry.get("rows", []),
            entry.get("result", {}),
        )
        for entry in tree[kind]
    ]
