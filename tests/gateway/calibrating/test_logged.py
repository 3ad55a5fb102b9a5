"""Pairs from the log: a fair sample, and floors that the next policy can keep."""

from collections import Counter
from collections.abc import Sequence

import pytest

from gateway.calibrating.certifying import Terms
from gateway.calibrating.logged import Logs, findings_of, pairs
from gateway.calibrating.report import page
from gateway.ledger.decisions import Glance, Logged
from gateway.policy_file import CalibrationFile, EngineCalibration, calibration_digest
from policies.calibration import Calibration
from tests.gateway.calibrating.rows import chance
from tests.gateway.ledger.decided import LARGE, SMALL, decided

OWN = EngineCalibration("d1", {"choice:2": Calibration(2.0, ((0.5, 0.4), (1.0, 0.99)))})
LOGS = Logs(
    "small",
    "large",
    "d1",
    CalibrationFile({"small": OWN, "other": EngineCalibration("d9")}),
    Terms(0.1, 0.1, "cell", joint=True),
    lambda _, read: float(read.tokens),
    "tokens a question",
    "today",
)


def traffic(n: int, floor: float, share: float) -> list[Logged]:
    """Decisions of a cascade with this floor, whose kept answers are sampled with this share.

    The engines agree as often as the small one says, by its map.
    """
    found = []
    for i in range(n):
        p = 0.5 + 0.5 * chance("p", i)
        likelihood = OWN.cells["choice:2"].likelihood(p)
        agrees = chance("agrees", i) < likelihood
        small = Glance("small", 10, likelihood, (p, 1 - p))
        large = Glance("large", 100, 0.9, (0.9, 0.1) if agrees else (0.1, 0.9))
        if likelihood < floor:
            made = decided(
                decision_id=i, tier=2, engine="large", reason="low_confidence", looks=(small, large)
            )
        else:
            drawn = chance("drawn", i) < share
            made = decided(
                decision_id=i,
                looks=(small,),
                sampling=share,
                drawn=drawn,
                shadow=large if drawn else None,
            )
        found.append(made)
    return found


def kinds(decisions: Sequence[Logged]) -> Counter[str]:
    return Counter(pair.logged.reason for pair in pairs(decisions, "small", "large"))


def test_what_both_engines_read_is_a_pair_and_nothing_else_is() -> None:
    unread = decided(looks=(SMALL,))
    gated = decided(looks=(LARGE,), reason="too_long", tier=2, engine="large")
    undrawn = decided(looks=(SMALL,), sampling=0.5)
    lost = decided(looks=(SMALL,), sampling=0.5, drawn=True)
    shadow = decided(looks=(LARGE,), reason="shadow", drawn=True, sampling=1.0, shadow=SMALL)

    (pair,) = pairs([unread, gated, undrawn, lost, shadow], "small", "large")

    assert (pair.small, pair.large) == (SMALL, LARGE)


def test_of_what_went_up_as_large_a_share_is_taken_as_of_what_was_kept() -> None:
    decisions = traffic(6000, 0.7, 0.2)
    found = kinds(decisions)
    went_up = sum(one.reason == "low_confidence" for one in decisions)

    assert found["confident"] / (6000 - went_up) == pytest.approx(0.2, abs=0.03)
    assert found["low_confidence"] / went_up == pytest.approx(0.2, abs=0.03)
    assert kinds(traffic(500, 0.7, 0.0)) == Counter()


def test_kept_answers_of_a_time_with_another_share_are_left_out() -> None:
    other = decided(decision_id=10**6, looks=(SMALL,), sampling=0.1, drawn=True, shadow=LARGE)
    decisions = [*traffic(300, 0.0, 0.5), other]

    assert 10**6 not in {pair.logged.decision_id for pair in pairs(decisions, "small", "large")}


def test_floors_come_from_logged_likelihoods_and_the_calibration_stays() -> None:
    sample = pairs(traffic(3000, 0.7, 1.0), "small", "large")
    found = findings_of(sample, LOGS)
    (floor,) = found.policy.floors
    (group,) = found.groups

    assert floor.promised
    assert floor.floor is not None
    assert 0.6 < floor.floor < 0.95
    assert floor.cell == "choice:2"
    assert found.policy.mode == "agreement"
    assert found.calibration == LOGS.calibration
    assert found.policy.engines["small"].calibration == calibration_digest(OWN)
    likelihoods = {pair.small.likelihood for pair in sample}
    assert all(
        min(abs(p - other) for other in likelihoods) < 1e-5 for p in group.group.likelihoods[:50]
    )
    assert group.trades[0].cost == pytest.approx(110)
    assert "as logged" in page(found)


def test_what_the_small_engine_does_not_vouch_for_stays_unkept() -> None:
    doubted = [
        decided(decision_id=i, looks=(SMALL, LARGE), reason="not_competent", tier=2)
        for i in range(10**6, 10**6 + 50)
    ]
    found = findings_of(pairs([*traffic(900, 0.0, 1.0), *doubted], "small", "large"), LOGS)
    (group,) = found.groups

    assert 20 < group.group.off["not_competent"] < 50
    assert group.group.promise.labels == len(group.group.answers) < 700
