"""A gateway with a month of invented traffic: for the browser tests and for screenshots."""

import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from gateway import issuing
from gateway.atomic import write_whole
from gateway.ledger.calendar import Calendar
from gateway.ledger.decisions import Trial
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    PolicyFile,
    Promise,
    calibration_digest,
    calibration_text,
    policy_text,
)
from policies.calibration import Calibration
from policies.sequential import Evidence, after

CONFIG = """
default_model = "tickets"

[ledger]
path = "{folder}/ledger.db"

[engines.small]
kind = "scripted"
[engines.large]
kind = "scripted"

[models.tickets]
tiers = ["small", "large"]
aliases = ["jev-latest"]

[cascade]
policy = "{folder}/policy.toml"
calibration = "{folder}/calibration.json"

[[prices.engines.small]]
effective = 2026-01-01
usd_per_million_tokens = 0.01
[[prices.engines.large]]
effective = 2026-01-01
usd_per_million_tokens = 0.09

[prices.machines.gpu]
usd_per_hour = 0.79
"""
DAYS = 30
DAY_S = 86_400
KEYS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("support-desk", {}, 9),
    ("shop-search", {"rpm": 600}, 5),
    ("night-batch", {}, 3),
    ("evaluation", {"expires": "90d"}, 1),
)
"""Name, wish, how busy."""
TRIALS = (("choice:3-5", 3, 412), ("noul", 2, 96), ("choice:6-10", 5, 57))
"""Cell, how many of 100 second opinions disagree, how many there were."""
NEAR = (("support-desk", 0.93), ("shop-search", 0.71), ("night-batch", 0.34))
"""Key → how much of its tokens a month is used."""
NEAR_USD = ("support-desk", 0.91)
"""The same of a key's dollars."""
REASONS = (("low_confidence", 14), ("too_long", 5), ("language", 3), ("not_competent", 2))
NANOS_PER_TOKEN = {"small": 10, "large": 90}
ROWS_A_DAY = 150


def config(folder: Path) -> str:
    """The configuration, with its files in the folder."""
    _write_promises(folder)
    return CONFIG.format(folder=folder)


def fill(folder: Path, now_s: float | None = None) -> str:
    """A ledger in the folder with keys and charges; the bearer key of an admin."""
    now_s = time.time() if now_s is None else now_s
    chance, models = random.Random(7), ["tickets", "jev-latest"]
    with closing(SqliteStore(f"{folder}/ledger.db")) as store, store.transaction():
        admin = issuing.create(store, {"name": "ada", "scopes": ["admin"]}, models, now_s)
        made = [
            (issuing.create(store, {"name": name, **wish}, models, now_s - 40 * DAY_S).key, busy)
            for name, wish, busy in KEYS
        ]
        gone = issuing.create(store, {"name": "intern-2026"}, models, now_s - 60 * DAY_S)
        store.revoke(gone.key.key_id, now_s - 20 * DAY_S)
        for days_ago in range(DAYS - 1, -1, -1):
            _fill_day(store, [(key.key_id, busy) for key, busy in made], now_s, days_ago, chance)
        for cell, wrong_of_100, seen in TRIALS:
            evidence = Evidence(0.05)
            for _ in range(seen):
                evidence = after(evidence, wrong=chance.random() * 100 < wrong_of_100)
            store.keep_trial(Trial("small", cell, "scripted", now_s - 9 * DAY_S, evidence))
        windows = Calendar().windows(now_s)
        for name, share in NEAR:
            _, month = store.spent(issuing.named(store, name).key_id, windows)
            limit = round(month.tokens / share, -3) or 1000
            issuing.set_limits(store, name, {"tokens_per_month": int(limit)})
        name, share = NEAR_USD
        _, month = store.spent(issuing.named(store, name).key_id, windows)
        dollars = max(0.01, month.nanos / 1e9 / share)
        issuing.set_limits(store, name, {"usd_per_month": f"{dollars:.4f}"})
    return admin.minted.text


def _fill_day(
    store: SqliteStore,
    keys: list[tuple[str, int]],
    now_s: float,
    days_ago: int,
    chance: random.Random,
) -> None:
    day_s = Calendar().windows(now_s - days_ago * DAY_S).day_s
    end_s = min(day_s + DAY_S, now_s)
    weekend = time.gmtime(day_s).tm_wday >= 5
    growth = (1.6 - days_ago / DAYS) * (0.35 if weekend else 1.0)
    rows = max(4, round(ROWS_A_DAY * (end_s - day_s) / DAY_S))
    moments = sorted(chance.uniform(day_s, end_s) for _ in range(rows))
    for at_s in moments:
        (key_id, busy) = chance.choices(keys, [busy for _, busy in keys])[0]
        store.charge(_charge(key_id, at_s, growth * busy, chance), day_s)


def _charge(key_id: str, at_s: float, size: float, chance: random.Random) -> Charge:
    asked = max(1, round(size * chance.uniform(0.5, 3)))
    reasons = {
        reason: count
        for reason, weight in REASONS
        if (count := round(asked * weight / 160 * chance.uniform(0.2, 4)))
    }
    escalated = sum(reasons.values())
    tokens = {"small": asked * chance.randint(9000, 16_000), "large": escalated * 12_400}
    failed = chance.random() < 0.03
    steps = tuple(
        ChargedStep(engine, count, round(count * us), count * NANOS_PER_TOKEN[engine])
        for (engine, count), us in zip(tokens.items(), (31.0, 94.0), strict=True)
        if count
    )
    return Charge(
        at_s=at_s,
        key_id=key_id,
        request_id=f"req_{chance.getrandbits(64):016x}",
        model_asked=chance.choice(["tickets", "jev-latest", None]),
        model_served="tickets",
        steps=steps,
        nouls=asked // 5,
        choices=asked - asked // 5 - asked // 7,
        scores=asked // 7,
        status=504 if failed else 200,
        escalated=escalated,
        reasons=reasons or None,
        nanos=sum(step.nanos or 0 for step in steps),
        price_version="demo",
    )


def _write_promises(folder: Path) -> None:
    cells = {"noul": 0.93, "choice:2": 0.9, "choice:3-5": 0.87, "choice:6-10": 0.91}
    measured = EngineCalibration("scripted", {cell: Calibration(1.2) for cell in cells}, {})
    write_whole(folder / "calibration.json", calibration_text(CalibrationFile({"small": measured})))
    kept = [
        Promise("small", True, 800, 0.05, cell=cell, floor=floor, accepted=500, errors=9)
        for cell, floor in cells.items()
    ]
    silent = Promise("small", False, 40, 0.05, cell="choice:11+", needs=160)
    policy = PolicyFile(
        created="2026-11-30T12:00:00Z",
        risk=0.05,
        delta=0.1,
        mode="labels",
        joint=True,
        engines={"small": Bound("scripted", calibration_digest(measured))},
        floors=(*kept, silent),
    )
    write_whole(folder / "policy.toml", policy_text(policy))
