"""Does asking a better engine help? Counts of what it fixed and broke, and their proof. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from policies.binomial import at_most

Verdict: TypeAlias = Literal["helps", "harms", "no_evidence", "nothing_known"]

LEVEL = 0.05
"""A p-value above this is no evidence."""


@dataclass(frozen=True, slots=True)
class Escalated:
    """One question that two engines answered: labels by their index."""

    before: int
    """What the cheaper engine said."""
    after: int
    """What the dearer one said."""
    truth: int | None
    """`None` = nobody told."""
    nanos: int | None
    """What the dearer engine's reading cost; `None` = it has no price."""


@dataclass(frozen=True, slots=True)
class Benefit:
    """What escalating did to a set of questions."""

    escalated: int = 0
    changed: int = 0
    """The dearer engine said something else; known without any truth."""
    fixed: int = 0
    broken: int = 0
    both_right: int = 0
    both_wrong: int = 0
    nanos: int = 0
    """Of all escalations that have a price."""
    unpriced: int = 0

    @property
    def known(self) -> int:
        """Escalations with a known truth."""
        return self.fixed + self.broken + self.both_right + self.both_wrong

    @property
    def unchanged(self) -> int:
        """Escalations with a known truth that left right right or wrong wrong."""
        return self.both_right + self.both_wrong

    @property
    def p_value(self) -> float:
        """See `mcnemar`."""
        return mcnemar(self.fixed, self.broken)

    @property
    def verdict(self) -> Verdict:
        """What is proven at level 0.05."""
        if not self.known:
            return "nothing_known"
        if self.p_value > LEVEL:
            return "no_evidence"
        return "helps" if self.fixed > self.broken else "harms"

    @property
    def nanos_per_fix(self) -> float | None:
        """What one net fix costs, if the unknown ones went as the known ones did.

        `None` = as many broken as fixed or more, nothing known, or not everything has a price.
        """
        gained = self.fixed - self.broken
        if gained <= 0 or self.unpriced or not self.known:
            return None
        return self.nanos * (self.known / self.escalated) / gained


def mcnemar(fixed: int, broken: int) -> float:
    """The exact two-sided p-value in (0, 1] of so many fixed and broken, were both as likely.

    Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12 (1947), with the binomial in place of its approximation.
    """
    return min(1.0, 2.0 * at_most(min(fixed, broken), fixed + broken, 0.5))


def benefit(questions: Iterable[Escalated]) -> Benefit:
    """The counts over these questions."""
    found = Benefit()
    for one in questions:
        found = replace(
            found,
            escalated=found.escalated + 1,
            changed=found.changed + (one.before != one.after),
            nanos=found.nanos + (one.nanos or 0),
            unpriced=found.unpriced + (one.nanos is None),
            **_truth(found, one),
        )
    return found


def sentence(name: str, found: Benefit) -> str:
    """What a person should take from the counts."""
    told = f"{found.fixed} fixed, {found.broken} broken, {found.unchanged} unchanged"
    proof = f"{told} of {found.known} with a known truth (p = {found.p_value:.2g})"
    match found.verdict:
        case "helps":
            return f"Escalating {name} helps: {proof}."
        case "harms":
            return f"Escalating {name} harms: {proof}. Stop it."
        case "no_evidence":
            return f"No evidence that escalating {name} helps: {proof}."
        case "nothing_known":
            return (
                f"Nothing is known about escalating {name}: the answer changed for "
                f"{found.changed} of {found.escalated}, and no truth was told for any of them."
            )


def _truth(found: Benefit, one: Escalated) -> dict[str, int]:
    """The count that the question's truth adds to."""
    if one.truth is None:
        return {}
    was, became = one.before == one.truth, one.after == one.truth
    if was and became:
        return {"both_right": found.both_right + 1}
    if was:
        return {"broken": found.broken + 1}
    return {"fixed": found.fixed + 1} if became else {"both_wrong": found.both_wrong + 1}
