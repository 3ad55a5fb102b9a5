"""The model card says what was measured with the weights that are shipped."""

import json
from typing import Any

import pytest

from bench.starter import CALIBRATION, CARD, REPORT, REPORTED, card_with, table
from engines.minilm import pinned
from engines.minilm.encode import MAX_TOKENS
from engines.starter.engine import StarterEngine

FLOORS = {"banking77 (choice)": 0.62, "clinc150 (choice)": 0.57}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(REPORT.read_text(encoding="utf-8"))
    return found


def test_the_report_was_made_with_these_weights(
    engine: StarterEngine, report: dict[str, Any]
) -> None:
    assert report["digest"] == engine.facts.digest
    assert report["model"] == engine.facts.model


def test_the_card_shows_the_reports_numbers(report: dict[str, Any]) -> None:
    card = CARD.read_text(encoding="utf-8")

    assert table(report["sets"]) in card
    assert card_with(card, report) == card


def test_every_set_is_reported_whole(report: dict[str, Any]) -> None:
    assert {title.partition(" ")[0] for title in report["sets"]} == set(REPORTED)
    assert all(one["n"] > one["refused"] for one in report["sets"].values())
    assert report["sets"]["banking77 (choice)"]["n"] == 1001
    assert report["sets"]["clinc150 (choice)"]["n"] == 1250


def test_the_reported_accuracy_reaches_the_floors(report: dict[str, Any]) -> None:
    for title, floor in FLOORS.items():
        assert report["sets"][title]["accuracy"] >= floor


def test_the_card_names_digests_window_licence_scales_and_the_doubt() -> None:
    card = CARD.read_text(encoding="utf-8")
    kinds = json.loads(CALIBRATION.read_text(encoding="utf-8"))["kinds"]

    for said in (
        *(pinned.MODEL_SHA256, pinned.TOKENIZER_SHA256, f"{MAX_TOKENS} tokens", "Apache-2.0"),
        *('`x_reason: "not_competent"`', "python -m bench starter report --data"),
        *(f"{kind} {kinds[kind]['scale']['temperature']:g}" for kind in kinds),
    ):
        assert said in card
