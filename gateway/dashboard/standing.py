"""How the promises about engines stand, as the plans and the policy have it. Knows no HTML."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.plan import Plan, Promised
from policies.cascade import NEVER


@dataclass(frozen=True, slots=True)
class Standing:
    """What is promised about an engine that has a better one above it."""

    engine: str
    state: str
    """`holds`, `suspended`, `none` (no policy speaks of it)."""
    why: str
    """Why it is suspended; empty otherwise."""
    claim: str
    """What is promised; empty for nothing."""
    promised: int
    """Cells and questions with a floor that an answer can reach."""
    refused: int
    """Cells and questions of which nothing could be promised."""
    floors: tuple[tuple[str, float], ...]
    """Cell or fingerprint → floor, of those with one."""
    demoted: tuple[str, ...]
    """Cells and fingerprints that are not kept since an alarm."""


def standings(promises: Mapping[str, Promised], plans: Mapping[str, Plan]) -> tuple[Standing, ...]:
    """How the promise stands about each engine that has a better one above it in some plan."""
    demoted: dict[str, set[str]] = {}
    for plan in plans.values():
        for tier in plan.tiers[:-1]:
            demoted.setdefault(tier.name, set()).update(tier.demoted)
    return tuple(_standing(one, promises.get(one), down) for one, down in demoted.items())


def _standing(engine: str, promised: Promised | None, demoted: set[str]) -> Standing:
    down = tuple(sorted(demoted))
    if promised is None:
        return Standing(engine, "none", "", "", 0, 0, (), down)
    floors = {**promised.floors.by_cell, **promised.floors.by_question}
    kept = tuple(sorted((what, floor) for what, floor in floors.items() if floor < NEVER))
    state = "holds" if promised.suspended is None else "suspended"
    refused = len(floors) - len(kept)
    why, claim = promised.suspended or "", promised.claim
    return Standing(engine, state, why, claim, len(kept), refused, kept, down)
