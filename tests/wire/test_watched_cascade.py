"""A cascade that is watched, as `tiergate serve` runs it: over sockets, and over a restart."""

from contextlib import closing
from pathlib import Path

import httpx

from gateway.cli import main
from gateway.ledger.decisions import Period
from gateway.ledger.sqlite import SqliteStore

from .serving import process

_CONFIG = """
default_model = "cascade"

[engines.small]
kind = "scripted"

[engines.large]
kind = "scripted"

[models.cascade]
tiers = ["small", "large"]

[cascade]
default_floor = 0.0

[ledger]
path = "{path}"

[watch]
shadow_share = 1.0
most_disagreement = 0.5
"""

_ASK = {"state": "a b c", "questions": {"urgent": {"type": "noul", "instructions": "Urgent?"}}}


def test_decisions_outcomes_and_second_opinions_outlive_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    with process(_CONFIG.format(path=path), tmp_path) as address:
        for _ in range(3):
            answer = httpx.post(f"{address.url}/v1/systemone", json=_ASK)
            assert answer.json()["answers"]["urgent"]["x_reason"] == "confident"
        told = httpx.post(
            f"{address.url}/v1/outcomes",
            json={
                "outcomes": [
                    {
                        "request_id": answer.headers["x-typesafe-request-id"],
                        "question": "urgent",
                        "truth": False,
                    }
                ]
            },
        )
        assert told.json() == {"accepted": 1}

    with closing(SqliteStore(path)) as store:
        rows = list(store.decisions(Period()))
        seen = {(one.engine, one.evidence.wrong) for one in store.every_trial()}
    assert [one.drawn for one in rows] == [True] * 3
    assert [one.truth for one in rows] == [None, None, 1]
    assert seen <= {("small", 0)}, "both engines say the same"
    assert main(["audit", "--config", str(tmp_path / "config.toml"), "--json"]) == 0
