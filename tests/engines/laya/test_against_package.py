"""Side by side with the reference package, where it is installed (requirements/parity.txt)."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.contract import Unreadable
from engines.laya.checkpoint import Checkpoint
from engines.laya.definition import DefinitionError, wordings
from engines.laya.desk import Desk, opened
from engines.laya.overflow import refuse_unfit
from engines.laya.rows import Budget, Row, Tokens
from engines.laya.settings import LayaSettings

from .fuzz import Request, requests

if os.environ.get("CI"):
    import laya
else:
    laya = pytest.importorskip("laya")


class Reference:
    """The package's agent; its network can be replaced by one that only takes notes."""

    def __init__(self, folder: Path) -> None:
        import torch

        torch.set_num_threads(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._agent = laya.load(str(folder), device="cpu")
        self._network = self._agent._infer

    def rows(self, request: Request) -> list[tuple[list[int], list[int]]] | None:
        """Ids and markers per question, `None` if the package refuses the request."""
        seen: list[dict[str, Any]] = []

        def note(batch: dict[str, Any]) -> tuple[Any, Any]:
            seen.append(batch)
            return _zeros(batch)

        self._agent._infer = note
        try:
            self._agent.predict(request.state, request.questions, **request.limits)
        except (ValueError, TypeError):
            return None
        finally:
            self._agent._infer = self._network
        return [row for batch in seen for row in _rows(batch)]

    def answers(self, request: Request) -> list[dict[str, Any]] | None:
        """The package's own answers."""
        try:
            result = self._agent.predict(request.state, request.questions, **request.limits)
        except (ValueError, TypeError):
            return None
        return list(result["answers"].values())


def _zeros(batch: dict[str, Any]) -> tuple[Any, Any]:
    import torch

    return torch.zeros(batch["marker_pos"].shape), torch.zeros(len(batch["input_ids"]), 2)


def _rows(batch: dict[str, Any]) -> Iterator[tuple[list[int], list[int]]]:
    for i in range(len(batch["input_ids"])):
        length = int(batch["attention_mask"][i].sum())
        options = int(batch["marker_mask"][i].sum())
        yield batch["input_ids"][i][:length].tolist(), batch["marker_pos"][i][:options].tolist()


@pytest.fixture(scope="module")
def reference(checkpoints: Path, name: str) -> Reference:
    return Reference(checkpoints / name)


def _own(request: Request, checkpoint: Checkpoint, tokens: Tokens) -> list[Row] | None:
    budget = Budget(
        request.limits.get("max_len", checkpoint.max_len),
        request.limits.get("head_max_len", checkpoint.head_max_len),
    )
    try:
        rows = [
            tokens.row(wording, tokens.state(request.state), budget)
            for wording in wordings(request.state, request.questions).values()
        ]
        for row in rows:
            refuse_unfit("q", row, budget)
    except (DefinitionError, Unreadable):
        return None
    return rows


def _compare(count: int, reference: Reference, checkpoint: Checkpoint, tokens: Tokens) -> None:
    answered = refused = 0
    for request in requests(count, seed=20):
        theirs = reference.rows(request)
        ours = _own(request, checkpoint, tokens)

        if theirs is None or ours is None:
            assert (theirs is None, ours is None) == (True, True), request
            refused += 1
        else:
            assert [(list(row.ids), list(row.markers)) for row in ours] == theirs, request
            answered += 1
    assert answered > count / 2
    assert refused > 0


def test_fuzzed_requests_become_the_same_rows_or_are_refused_by_both(
    reference: Reference, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    _compare(150, reference, checkpoint, tokens)


@pytest.mark.slow
def test_1500_fuzzed_requests_per_checkpoint_become_the_same_rows(
    reference: Reference, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    _compare(1500, reference, checkpoint, tokens)


def test_fuzzed_requests_get_the_same_probabilities(
    reference: Reference, checkpoints: Path, name: str
) -> None:
    desk = opened(checkpoints / name, LayaSettings(checkpoints / name, harden=False))
    compared = 0
    for request in requests(30, seed=7):
        answers, rows = reference.answers(request), _own(request, desk.checkpoint, desk.tokens)
        if answers is None or rows is None:
            continue
        for answer, row in zip(answers, rows, strict=True):
            assert np.abs(_stated(answer) - _read(desk, row)).max() <= 1.6e-4
            compared += 1
    assert compared > 25


def _stated(answer: dict[str, Any]) -> Any:
    if "noul" in answer:
        return np.array([1.0 - answer["noul"], answer["noul"]])
    return np.array(list(answer["probabilities"].values()))


def _read(desk: Desk, row: Row) -> Any:
    weights = np.array(desk.log_weights([row])[0])
    shares = np.exp(weights - weights.max())
    return shares / shares.sum()
