"""What a soak has shown: whether anything grew, waited too long, or was not in the ledger."""

import sqlite3
import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from bench.soak_acts import LEFT
from bench.soak_gateway import Rest
from bench.verdict import MAX_FOREIGN_SHARE

MAX_HEALTH_P99_S = 0.5
MAX_STARVED_P99_S = 5.0
"""Of `/health`, where others use so much of the machine that it shows little."""
MAX_ANSWER_P99_S = 8.0
"""The gateway's own deadline."""
MAX_GROWTH_SHARE = 0.03
MAX_GROWTH_BYTES = 4 * 1024 * 1024
"""Of memory from the first laps after the warm-up to the last; the larger of the two counts."""
_SAMPLE = 5
_ANSWERED = """
SELECT request_id, tokens FROM charges WHERE status = 200 AND key_id LIKE 'k!_%' ESCAPE '!'"""


def p99(values: Sequence[float]) -> float:
    """The value that 99 % of them do not exceed; NaN for none."""
    if len(values) < 2:
        return max(values, default=float("nan"))
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def growth_bytes(rests: Sequence[Rest]) -> float:
    """How much more memory is held at rest in the last third of the laps than in the first."""
    third = max(1, len(rests) // 3)
    first, last = (
        statistics.median(rest.rss_bytes for rest in part)
        for part in (rests[:third], rests[-third:])
    )
    return last - first


def leaks(rests: Sequence[Rest]) -> list[str]:
    """What grew from lap to lap, as sentences; the first fifth of the laps is the warm-up."""
    measured = rests[max(1, len(rests) // 5) :]
    warm, last = measured[0], measured[-1]
    found = []
    grown, allowed = growth_bytes(measured), MAX_GROWTH_BYTES
    allowed = max(allowed, round(MAX_GROWTH_SHARE * measured[0].rss_bytes))
    if grown > allowed:
        found.append(
            f"memory at rest grew by {grown / 1e6:.1f} MB, allowed are {allowed / 1e6:.1f}"
        )
    if last.descriptors > warm.descriptors:
        found.append(f"file descriptors grew from {warm.descriptors} to {last.descriptors}")
    if last.threads > warm.threads:
        found.append(f"threads grew from {warm.threads} to {last.threads}")
    return found


def waits(
    health_s: Sequence[float], answered_s: Sequence[float], foreign_share: float
) -> list[str]:
    """What took too long, as sentences; `foreign_share` of the CPUs was used by others."""
    found = []
    quiet = foreign_share <= MAX_FOREIGN_SHARE
    for what, values, most_s in (
        ("/health", health_s, MAX_HEALTH_P99_S if quiet else MAX_STARVED_P99_S),
        ("an answer", answered_s, MAX_ANSWER_P99_S),
    ):
        if not p99(values) <= most_s:
            found.append(f"p99 of {what} is {p99(values):.3f} s, at most {most_s:g} are allowed")
    return found


def differences(ledger: Path, told: Mapping[str, int]) -> list[str]:
    """Where the ledger and what callers were told differ, as sentences.

    Callers who left may have been answered without reading it: their rows are expected by nobody.
    Nobody is told of second opinions either; they are charged to no key.
    """
    with closing(sqlite3.connect(ledger)) as connection:
        select = connection.execute
        answered = select(_ANSWERED)
        rows = [row for row in answered if not str(row[0]).startswith(LEFT)]
        (charged,) = select("SELECT COALESCE(SUM(tokens), 0) FROM charges").fetchone()
        (balance,) = select("SELECT COALESCE(SUM(tokens), 0) FROM balances").fetchone()
        (damage,) = select("PRAGMA integrity_check").fetchone()
    written: dict[str, int] = dict(rows)
    lost = [one for one in told if one not in written]
    other = [one for one in told if one in written and written[one] != told[one]]
    unasked = [one for one in written if one not in told]
    found = []
    for what, which in (
        ("answers are not in the ledger", lost),
        ("answers have other tokens in the ledger", other),
        ("rows of the ledger were answered to nobody", unasked),
    ):
        if which:
            found.append(f"{len(which)} {what}: {', '.join(which[:_SAMPLE])}")
    if len(rows) != len(written):
        found.append(f"{len(rows) - len(written)} answers are charged twice")
    if charged != balance:
        found.append(f"the balances say {balance} tokens, the charges {charged}")
    if damage != "ok":
        found.append(f"the ledger is damaged: {damage}")
    return found
