"""What work costs: tokens and engine time to money, without a float in between.

Money is a whole number of *nanos*, 1e-9 of the currency: a token at 0.042 a million is 42 of them.
Each engine's share is rounded once, half up, so that sums are exact in any order.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NANOS = 10**9
"""Nanos in one unit of a currency."""

_TOKENS = 10**6
_HOUR_US = 3600 * 10**6


@dataclass(frozen=True, slots=True)
class Tariff:
    """What an engine or a hosted model costs from a moment on."""

    from_s: int
    """Unix time in seconds from which it holds, until the next tariff of the same name."""
    million_tokens: int = 0
    """Nanos for a million tokens."""
    hour: int = 0
    """Nanos for an hour of engine time."""

    def cost(self, tokens: int, busy_us: int = 0) -> int:
        """Nanos for this much work, rounded once, half up."""
        if not self.hour:
            return (2 * tokens * self.million_tokens + _TOKENS) // (2 * _TOKENS)
        over = tokens * self.million_tokens * _HOUR_US + busy_us * self.hour * _TOKENS
        under = _TOKENS * _HOUR_US
        return (2 * over + under) // (2 * under)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What several engines cost at most, for a while."""

    from_s: float
    until_s: float
    """Just after the last moment (unix seconds) that it holds for."""
    million_tokens: int
    """Nanos for a million tokens of the dearest."""
    flat: int
    """Nanos for all the time that all of them may take."""

    def cost(self, tokens: int, times: int) -> int:
        """At least what the tariffs say of so many tokens, and of so many times the time."""
        return tokens * self.million_tokens // _TOKENS + self.flat * times


@dataclass(frozen=True, slots=True)
class PriceList:
    """Every tariff that is known, by name. A name without one is *unpriced*, never free."""

    currency: str
    """ISO 4217, e.g. `USD`."""
    tariffs: Mapping[str, Sequence[Tariff]]
    """Name → tariffs, earliest first."""

    def tariff(self, name: str, at_s: float) -> Tariff | None:
        """What holds for `name` at a moment (unix seconds); `None` = unpriced."""
        found = None
        for tariff in self.tariffs.get(name, ()):
            if tariff.from_s <= at_s:
                found = tariff
        return found

    def ceiling(self, names: Sequence[str], at_s: float, longest_us: int) -> Ceiling | None:
        """A bound for engines that take at most so many microseconds each; `None` = unpriced.

        Two nanos for each engine make up for what is rounded.
        """
        million_tokens, flat, from_s, until_s = 0, 0, -math.inf, math.inf
        for name in names:
            tariff = self.tariff(name, at_s)
            if tariff is None:
                return None
            million_tokens = max(million_tokens, tariff.million_tokens)
            flat += -(-tariff.hour * longest_us // _HOUR_US) + 2
            from_s = max(from_s, tariff.from_s)
            later = [one.from_s for one in self.tariffs[name] if one.from_s > at_s]
            until_s = min([until_s, *later])
        return Ceiling(from_s, until_s, million_tokens, flat)

    def unpriced(self, names: Sequence[str], at_s: float) -> tuple[str, ...]:
        """Those of `names` that have no price at a moment, in their order."""
        return tuple(name for name in names if self.tariff(name, at_s) is None)

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that change whenever a price does; kept with every charge."""
        said = [self.currency] + [
            f"{name}:{tariff.from_s}:{tariff.million_tokens}:{tariff.hour}"
            for name in sorted(self.tariffs)
            for tariff in self.tariffs[name]
        ]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:8]


def break_even_tokens(hosted: Tariff, owned_hour: int, hours: float) -> float | None:
    """Tokens over `hours` at which the hosted model costs as much as owning (nanos an hour).

    `None` = never: the hosted model is free.
    """
    if hosted.million_tokens == 0:
        return None
    return owned_hour * hours * _TOKENS / hosted.million_tokens
