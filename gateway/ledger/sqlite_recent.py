"""The last charges of the SQLite file, one by one."""

import json
import sqlite3
from typing import Any

from gateway.ledger.store import Charge, Charged, ChargedStep

_RECENT = """
SELECT charge_id, COALESCE(keys.name, charges.key_id), at_s, charges.key_id, request_id,
       model_asked, model_served, steps, nouls, choices, scores, status, escalated, reasons,
       cached, nanos, price_version
FROM charges LEFT JOIN keys USING (key_id)
WHERE charge_id < :before AND (:key_id IS NULL OR charges.key_id = :key_id)
ORDER BY charge_id DESC LIMIT :at_most"""

_ALL = 2**63 - 1


def recent(
    connection: sqlite3.Connection, at_most: int, before: int | None, key_id: str | None
) -> list[Charged]:
    """See `Store.recent`."""
    values = {
        "before": _ALL if before is None else min(before, _ALL),
        "key_id": key_id,
        "at_most": at_most,
    }
    return [_charged(row) for row in connection.execute(_RECENT, values)]


def _charged(row: tuple[Any, ...]) -> Charged:
    charge_id, key, at_s, key_id, request_id, asked, served, steps, *rest = row
    nouls, choices, scores, status, escalated, reasons, cached, nanos, version = rest
    charge = Charge(
        at_s,
        key_id,
        request_id,
        asked,
        served,
        tuple(ChargedStep(*step) for step in json.loads(steps)),
        nouls,
        choices,
        scores,
        status,
        escalated,
        None if reasons is None else json.loads(reasons),
        bool(cached),
        nanos,
        version,
    )
    return Charged(charge_id, key, charge)
