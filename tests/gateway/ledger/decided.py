"""Decisions for tests."""

from typing import Any

from hypothesis import strategies as st

from gateway.ledger.decisions import Glance, Logged, question_digest
from tests.gateway.ledger.charges import DAY

NOON_S = (DAY + 0.5) * 86_400
SMALL = Glance("small", 10, 0.9, (0.9, 0.1))
LARGE = Glance("large", 30, 0.7, (0.3, 0.7))

_USUAL: dict[str, Any] = {
    "decision_id": 1,
    "at_s": NOON_S,
    "key_id": "k_1",
    "request_id": "r",
    "model": "cascade",
    "fingerprint": "f" * 16,
    "kind": "choice",
    "labels": 2,
    "tier": 1,
    "engine": "small",
    "reason": "confident",
    "looks": (SMALL,),
}


def decided(name: str = "q", **changes: Any) -> Logged:
    """A choice of two that the small engine answered with its first option, at noon."""
    made = _USUAL | {"question": question_digest(changes.get("request_id", "r"), name)} | changes
    return Logged(**made)


def _shares(millionths: list[int]) -> tuple[float, ...]:
    total = sum(millionths) or 1
    shares = [m * 1_000_000 // total for m in millionths]
    shares[0] += 1_000_000 - sum(shares)
    return tuple(share / 1_000_000 for share in shares)


GLANCES = st.builds(
    Glance,
    engine=st.sampled_from(["small", "large"]),
    tokens=st.integers(0, 10**6),
    likelihood=st.integers(0, 10**6).map(lambda m: m / 1_000_000),
    probabilities=st.lists(st.integers(0, 1000), min_size=1, max_size=20).map(_shares),
)
"""What engines may make of questions, in steps of 1e-6."""
