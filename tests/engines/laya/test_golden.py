"""Parity with the reference package on everything that was recorded of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.contract import Unreadable
from engines.laya.artifact import imported
from engines.laya.checkpoint import Checkpoint
from engines.laya.definition import DefinitionError
from engines.laya.desk import Desk, opened
from engines.laya.network import BatchNetwork, RowNetwork
from engines.laya.overflow import refuse_unfit
from engines.laya.rows import Row, Tokens
from engines.laya.settings import LayaSettings
from policies.calibration import probabilities

from .golden import Case, cases


@pytest.fixture(scope="module")
def desk(checkpoints: Path, name: str) -> Desk:
    return opened(checkpoints / name, LayaSettings(checkpoints / name, harden=False))


Recorded = list[tuple[Row, dict[str, Any]]]


def _recorded(name: str, checkpoint: Checkpoint, tokens: Tokens) -> Recorded:
    return [
        (row, recorded)
        for case in cases(name)
        for row, recorded in zip(case.encoded(checkpoint, tokens), case.rows, strict=True)
    ]


def _short(recorded: Recorded) -> Recorded:
    """Those that are quick to read together."""
    return [(row, entry) for row, entry in recorded if len(row.ids) < 160]


def test_every_recorded_row_has_the_same_tokens_markers_and_losses(
    name: str, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    rows = _recorded(name, checkpoint, tokens)

    assert len(rows) == 39
    for row, recorded in rows:
        assert list(row.ids) == recorded["ids"]
        assert list(row.markers) == recorded["markers"]
        assert row.losses.state == recorded["state_stats"]["state_tokens_dropped"]
        assert row.losses.merged == (
            recorded["options"]["options_distinct"] < recorded["options"]["options"]
        )


def test_every_recorded_row_has_the_same_logits(
    name: str, desk: Desk, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    for row, recorded in _recorded(name, checkpoint, tokens):
        logits = desk.network.logits([row])[0]

        assert np.abs(logits - recorded["logits"]).max() <= 1e-4


def test_padded_batches_have_the_recorded_logits_too(
    name: str, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    rows = _short(_recorded(name, checkpoint, tokens))
    network = BatchNetwork(imported(checkpoint, "fp32", "batch").graph, "cpu", 0)

    together = network.together([row for row, _ in rows], 64)

    for logits, (_, recorded) in zip(together, rows, strict=True):
        assert np.abs(logits - recorded["logits"]).max() <= 1e-4


def test_every_recorded_answer_has_the_same_probabilities(name: str, desk: Desk) -> None:
    answered = 0
    for case in cases(name):
        for row, recorded in zip(
            case.encoded(desk.checkpoint, desk.tokens), _answers(case), strict=True
        ):
            p = probabilities(desk.log_weights([row])[0])

            assert p == pytest.approx(recorded, abs=1.5e-4)
            answered += 1
    assert answered == 39


def _answers(case: Case) -> list[list[float]]:
    """Recorded probabilities per question, a noul's as [false, true]."""
    return [
        [1 - answer["noul"], answer["noul"]]
        if "noul" in answer
        else list(answer["probabilities"].values())
        for answer in case.result["answers"].values()
    ]


def test_everything_the_reference_refuses_is_refused(
    name: str, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    refused = cases(name, "errors")

    assert len(refused) == 16
    for case in refused:
        with pytest.raises((DefinitionError, Unreadable)):
            _read(case, checkpoint, tokens)


def _read(case: Case, checkpoint: Checkpoint, tokens: Tokens) -> None:
    for row in case.encoded(checkpoint, tokens):
        refuse_unfit(case.name, row, case.budget(checkpoint))


def test_a_row_reads_the_same_to_the_bit_whatever_was_read_before(
    name: str, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    rows = [row for row, _ in _short(_recorded(name, checkpoint, tokens))]
    for precision in ("fp32", "int8"):
        network = RowNetwork(imported(checkpoint, precision).graph)
        first = network.logits(rows)

        again = network.logits(rows[::-1])[::-1]

        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_row_scaled_int8_does_not_depend_on_neighbours_or_padding(
    name: str, checkpoint: Checkpoint, tokens: Tokens
) -> None:
    rows = [row for row, _ in _short(_recorded(name, checkpoint, tokens))]
    graph = imported(checkpoint, "int8", "batch").graph
    network = BatchNetwork(graph, "cpu", checkpoint.specials.pad)
    width = max(len(row.ids) for row in rows)

    together = network.together(rows, width)

    for row, logits in zip(rows, together, strict=True):
        assert np.array_equal(network.together([row], width)[0], logits)
