"""Of what went up: did it help, and what did each fix cost? Of what was kept: was it right?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from gateway.engine_costs import EngineCosts
from gateway.ledger.decisions import Logged
from policies.benefit import Benefit, Escalated, benefit
from policies.cells import cell

By: TypeAlias = Literal["question", "cell", "model"]

_NO_CHOICE = frozenset({"shadow", "off", "pinned"})
"""Reasons why the last engine answered that have nothing to do with the question."""

_GROUP: dict[By, Callable[[Logged], str]] = {
    "question": lambda one: one.fingerprint,
    "cell": lambda one: cell(one.kind, one.labels),
    "model": lambda one: one.model,
}


@dataclass(frozen=True, slots=True)
class Kept:
    """Answers of a model's first engine that were not asked further."""

    kept: int = 0
    told: int = 0
    """Those whose truth was told."""
    wrong: int = 0
    """Those of `told` that were wrong."""
    second: int = 0
    """Those that the last engine read afterwards, drawn at random."""
    disagreed: int = 0
    """Those of `second` where it said something else."""


@dataclass(slots=True)
class _Group:
    """What is collected of one question, cell or model."""

    escalated: list[Escalated] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Audited:
    """One question, cell or model."""

    name: str
    escalated: Benefit
    kept: Kept
    unread: int
    """Went up without having been read below, so that there is nothing to compare."""


def audited(decisions: Iterable[Logged], costs: EngineCosts, by: By) -> list[Audited]:
    """Every group that occurs, those with the most escalations first."""
    groups: dict[str, _Group] = {}
    for one in decisions:
        if one.reason in _NO_CHOICE:
            continue
        group = groups.setdefault(_GROUP[by](one), _Group())
        if one.tier == 1:
            group.kept = _with(group.kept, one)
        elif len(one.looks) < 2:
            group.unread += 1
        else:
            group.escalated.append(_escalated(one, costs))
    found = [
        Audited(name, benefit(group.escalated), group.kept, group.unread)
        for name, group in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.escalated.escalated, one.name))


def _escalated(one: Logged, costs: EngineCosts) -> Escalated:
    """First look against last; everything after the first is what escalating cost."""
    first, *later = one.looks
    parts = [costs.nanos(look.engine, look.tokens, one.at_s) for look in later]
    priced = [part for part in parts if part is not None]
    nanos = sum(priced) if len(priced) == len(parts) else None
    return Escalated(first.label, later[-1].label, one.truth, nanos)


def _with(kept: Kept, one: Logged) -> Kept:
    label = one.looks[-1].label if one.looks else -1
    told, second = one.truth is not None, one.shadow is not None
    return replace(
        kept,
        kept=kept.kept + 1,
        told=kept.told + told,
        wrong=kept.wrong + (told and one.truth != label),
        second=kept.second + second,
        disagreed=kept.disagreed + (one.shadow is not None and one.shadow.label != label),
    )
