"""Whether the traffic of a cascade is still what it was: two periods of its decisions, compared."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gateway.ledger.decisions import Logged
from policies.cells import cell
from policies.drift import Drift, binned, cuts_of, drift

By: TypeAlias = Literal["cell", "question"]


@dataclass(frozen=True, slots=True)
class Drifted:
    """One engine and cell (or question), then and now."""

    model: str
    engine: str
    """The first that read the questions."""
    what: str
    """The cell, or the fingerprint."""
    before: int
    """Decisions of the reference period."""
    now: int
    escalated_before: int
    escalated_now: int
    likelihood: Drift
    """Of the engine's likelihoods, over bins of equal shares of the reference."""
    escalation: Drift
    """Of going up or staying."""

    @property
    def findings(self) -> list[str]:
        """What has changed, as clauses."""
        measures = (("likelihood", self.likelihood), ("escalation share", self.escalation))
        return [
            f"the {name} has {one.verdict} (PSI {one.psi:.2f}, {one.by_chance:.2f} by chance)"
            for name, one in measures
            if one.verdict in ("shifted", "changed")
        ]

    @property
    def changed(self) -> bool:
        """Whether either index says that this is another population."""
        return "changed" in (self.likelihood.verdict, self.escalation.verdict)


@dataclass(slots=True)
class _Sample:
    """What is collected of one period."""

    likelihoods: list[float] = field(default_factory=list)
    escalated: int = 0

    def add(self, one: Logged) -> None:
        self.likelihoods.append(one.looks[0].likelihood)
        self.escalated += one.tier > 1

    @property
    def routes(self) -> list[int]:
        """How many stayed and went up."""
        return [len(self.likelihoods) - self.escalated, self.escalated]


def drifted(reference: Iterable[Logged], current: Iterable[Logged], by: By) -> list[Drifted]:
    """Every model, engine and cell (or question) of either period, in that order.

    Questions that no engine read before they went up are left out.
    """
    before, now = _sampled(reference, by), _sampled(current, by)
    return [
        _compared(key, before.get(key, _Sample()), now.get(key, _Sample()))
        for key in sorted({*before, *now})
    ]


def _sampled(decisions: Iterable[Logged], by: By) -> dict[tuple[str, str, str], _Sample]:
    found: dict[tuple[str, str, str], _Sample] = {}
    for one in decisions:
        if one.looks:
            what = cell(one.kind, one.labels) if by == "cell" else one.fingerprint
            found.setdefault((one.model, one.looks[0].engine, what), _Sample()).add(one)
    return found


def _compared(key: tuple[str, str, str], before: _Sample, now: _Sample) -> Drifted:
    cuts = cuts_of(before.likelihoods)
    return Drifted(
        *key,
        before=len(before.likelihoods),
        now=len(now.likelihoods),
        escalated_before=before.escalated,
        escalated_now=now.escalated,
        likelihood=drift(binned(before.likelihoods, cuts), binned(now.likelihoods, cuts)),
        escalation=drift(before.routes, now.routes),
    )
