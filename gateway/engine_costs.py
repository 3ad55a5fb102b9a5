"""What an engine's reading cost, where only its tokens are remembered."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.pricing import PriceList


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Prices, and how long the engines take."""

    prices: PriceList
    us_per_token: Mapping[str, float] = field(default_factory=dict)
    """Engine → mean engine time of a token in microseconds, for prices by the hour."""

    def nanos(self, engine: str, tokens: float, at_s: float) -> int | None:
        """Nano-dollars for so many tokens at a moment; `None` = the engine has no price."""
        tariff = self.prices.tariff(engine, at_s)
        if tariff is None:
            return None
        return tariff.cost(round(tokens), round(tokens * self.us_per_token.get(engine, 0.0)))
