"""The audit of a log: who was compared with whom, and what it cost."""

from typing import Any

from gateway.auditing import audited
from gateway.engine_costs import EngineCosts
from gateway.ledger.decisions import Glance, Logged
from policies.pricing import PriceList, Tariff
from tests.gateway.ledger.decided import LARGE, SMALL, decided

HOURLY = PriceList("USD", {"large": (Tariff(0, million_tokens=1_000_000, hour=3600 * 10**6),)})
COSTS = EngineCosts(HOURLY, {"large": 2.0})
"""A nano a token, and a nano a microsecond, of which each token takes two."""


def up(truth: int | None = None, **changes: Any) -> Logged:
    """The small engine said 0, the large one 1."""
    went: dict[str, Any] = {
        "tier": 2,
        "engine": "large",
        "reason": "low_confidence",
        "looks": (SMALL, LARGE),
    }
    return decided(truth=truth, **(went | changes))


def test_escalations_are_fixed_broken_or_neither_by_question() -> None:
    rows = [up(1), up(1), up(0), up(), up(1, fingerprint="e" * 16)]

    first, second = audited(rows, COSTS, "question")

    assert (first.name, second.name) == ("f" * 16, "e" * 16)
    found = first.escalated
    assert (found.escalated, found.changed, found.known) == (4, 4, 3)
    assert (found.fixed, found.broken) == (2, 1)
    assert found.nanos == 4 * 30 * (1 + 2)
    assert found.nanos_per_fix == 4 * 90 * (3 / 4) / 1


def test_kept_answers_are_compared_with_truths_and_second_opinions() -> None:
    agrees = Glance("large", 30, 0.6, (0.6, 0.4))
    rows = [
        decided(truth=0),
        decided(truth=1),
        decided(shadow=LARGE, drawn=True, sampling=0.1),
        decided(shadow=agrees, drawn=True, sampling=0.1),
        decided(),
    ]

    (found,) = audited(rows, COSTS, "model")

    assert found.name == "cascade"
    assert found.escalated.escalated == 0
    kept = found.kept
    assert (kept.kept, kept.told, kept.wrong, kept.second, kept.disagreed) == (5, 2, 1, 2, 1)


def test_what_went_up_unread_has_nothing_to_be_compared_with() -> None:
    rows = [up(1, reason="too_long", looks=(LARGE,)), up(1, labels=7)]

    small, large = sorted(audited(rows, COSTS, "cell"), key=lambda one: one.name)

    assert (small.name, small.unread, small.escalated.escalated) == ("choice:2", 1, 0)
    assert (large.name, large.unread, large.escalated.escalated) == ("choice:6-10", 0, 1)


def test_an_engine_without_a_price_is_unpriced_not_free() -> None:
    (found,) = audited([up(1)], EngineCosts(PriceList("USD", {})), "question")

    assert (found.escalated.unpriced, found.escalated.nanos_per_fix) == (1, None)


def test_shadow_mode_is_no_escalation() -> None:
    shadowed = up(reason="shadow", looks=(LARGE,), shadow=SMALL, drawn=True, sampling=1.0)

    assert audited([shadowed], COSTS, "question") == []
