"""Texts: kept only where the operator says so, as long as their charge, and no longer than told."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.config import Settings
from gateway.ledger.sqlite import SqliteStore
from tests.gateway.conftest import ASK, Gateway, bearer, charged, ledger_settings

PATH = "/v1/systemone"
TEXTS = ("charged twice", "Which team", "billing", "Payments", "calm")


def kept(settings: Settings) -> list[dict[str, Any]]:
    """Every row of the view, oldest first."""
    with closing(sqlite3.connect(settings.ledger.path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM kept_texts ORDER BY 1")]


def stored(folder: Path) -> bytes:
    """Every byte of the ledger's files."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("durability", ["group", "async"])
async def test_by_default_no_text_is_in_the_file(
    gateway: Gateway, tmp_path: Path, durability: str
) -> None:
    settings = ledger_settings(tmp_path, durability=durability)
    key = bearer(settings)
    with gateway(settings) as client:
        assert (await client.post(PATH, json=ASK, headers=key)).status_code == 200

    assert len(charged(settings)) == 1
    assert kept(settings) == []
    assert not [text for text in TEXTS if text.encode() in stored(tmp_path)]


@pytest.mark.parametrize("durability", ["group", "async"])
async def test_with_store_text_what_was_asked_and_answered_stands_beside_the_charge(
    gateway: Gateway, tmp_path: Path, durability: str
) -> None:
    settings = ledger_settings(tmp_path, durability=durability, store_text=True)
    key = bearer(settings) | {"x-request-id": "mine"}
    with gateway(settings) as client:
        answers = (await client.post(PATH, json=ASK, headers=key)).json()["answers"]

    assert not [text for text in TEXTS if text.encode() not in stored(tmp_path)]
    (row,) = kept(settings)
    (charge,) = charged(settings)
    assert (row["charge_id"], row["request_id"]) == (charge["charge_id"], "mine")
    assert (row["key"], row["status"], row["cut"]) == ("team", 200, 0)
    asked, answered = json.loads(row["asked"]), json.loads(row["answered"])
    assert asked["state"] == ASK["state"]
    assert asked["questions"].keys() == ASK["questions"].keys() == answered.keys()
    for name, answer in answered.items():
        assert answer.items() <= answers[name].items()


async def test_a_long_text_is_cut_where_a_character_ends(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path, store_text=True, text_bytes=256)
    key = bearer(settings)
    with gateway(settings) as client:
        response = await client.post(PATH, json=ASK | {"state": "ü" * 1000}, headers=key)

    assert response.status_code == 200
    (row,) = kept(settings)
    assert row["cut"] == 1
    assert 254 <= len(row["asked"].encode()) <= 256
    assert row["asked"].endswith("ü")


@pytest.mark.parametrize("state", [r'"\u00fc\ud83d\ude00"', "[123456789012345678901234567890]"])
async def test_what_json_can_say_can_be_kept(gateway: Gateway, tmp_path: Path, state: str) -> None:
    settings = ledger_settings(tmp_path, store_text=True)
    key = bearer(settings) | {"content-type": "application/json"}
    question = '{"type": "noul", "instructions": "?"}'
    body = f'{{"state": {state}, "questions": {{"q": {question}}}}}'
    with gateway(settings) as client:
        response = await client.post(PATH, content=body.encode(), headers=key)

    assert response.status_code == 200
    (row,) = kept(settings)
    assert json.loads(row["asked"])["state"] == json.loads(state)


async def test_a_text_goes_with_its_charge(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path, store_text=True)
    key = bearer(settings)
    with gateway(settings) as client:
        for _ in range(2):
            await client.post(PATH, json=ASK, headers=key)
    assert len(kept(settings)) == 2

    with closing(SqliteStore(settings.ledger.path)) as store:
        assert store.prune(2e9, 1) == 1

    assert len(kept(settings)) == 1
    with closing(sqlite3.connect(settings.ledger.path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM texts").fetchone() == (1,)
        connection.execute("DELETE FROM charges")
        assert connection.execute("SELECT COUNT(*) FROM texts").fetchone() == (0,)


async def test_the_views_of_the_bill_show_no_text(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path, store_text=True)
    key = bearer(settings)
    with gateway(settings) as client:
        await client.post(PATH, json=ASK, headers=key)

    with closing(sqlite3.connect(settings.ledger.path)) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'v\\_%' ESCAPE '\\'"
        )
        names = [name for (name,) in found]
        shown = repr([connection.execute(f"SELECT * FROM {name}").fetchall() for name in names])
    assert {"v_charges", "v_usage_daily", "v_escalations"} <= set(names)
    assert not [text for text in TEXTS if text in shown]
