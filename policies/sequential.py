"""Is a promise still kept? A test that may be looked at after every observation. Pure.

The promise: whatever went before, the next answer is wrong with probability at most `promised`.
Against it a gambler bets at fair odds; as long as the promise holds, nobody can expect to win. By
Ville's inequality (J. Ville, "Étude critique de la notion de collectif", 1939) wealth that begins
at 1 ever reaches 1/δ with probability at most δ, however long one looks and whenever one stops.

Each bet is a likelihood ratio against a larger rate, so the wealth is one of G. Shafer, "Testing by
betting", Journal of the Royal Statistical Society A 184 (2021). Money is spread over several
rates and, as a promise may break at any time, over every moment to begin: at observation t the
share 1/(t (t + 1)) of it starts to play. A sum of such wealths is one again.
"""

from dataclasses import dataclass, field

ODDS_RATIOS: tuple[float, ...] = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""How many times the promised odds of a wrong answer the gambler bets on, a sixth on each."""

_MOST = 1e100
"""Wealth beyond this says nothing more."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What has been seen of one promise, and what it weighs."""

    promised: float
    """Most that may be wrong, in (0, 1)."""
    seen: int = 0
    wrong: int = 0
    played: tuple[float, ...] = field(default=(0.0,) * len(ODDS_RATIOS))
    """Wealth that plays on each of `ODDS_RATIOS`, at least 0."""

    @property
    def against(self) -> float:
        """The gambler's wealth: at least 0, and 1 before anything is seen. An e-value."""
        return 1.0 / (self.seen + 1) + sum(self.played)

    def alarm(self, delta: float) -> bool:
        """Whether the promise is refuted; falsely with probability at most `delta`, ever."""
        return self.against >= 1.0 / delta


def after(evidence: Evidence, *, wrong: bool) -> Evidence:
    """The evidence with one more observation."""
    turn = evidence.seen + 1
    joining = 1.0 / (turn * (turn + 1)) / len(ODDS_RATIOS)
    played = tuple(
        min(_MOST, (wealth + joining) * _factor(evidence.promised, ratio, wrong=wrong))
        for wealth, ratio in zip(evidence.played, ODDS_RATIOS, strict=True)
    )
    return Evidence(evidence.promised, turn, evidence.wrong + wrong, played)


def _factor(promised: float, odds_ratio: float, *, wrong: bool) -> float:
    """The likelihood ratio of one observation; its mean is at most 1 while the promise holds."""
    odds = promised / (1.0 - promised) * odds_ratio
    rate = odds / (1.0 + odds)
    return rate / promised if wrong else (1.0 - rate) / (1.0 - promised)
