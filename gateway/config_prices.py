"""`[prices]`: what engines, hosted models and machines cost.

A price carries its unit in its name. One that cannot be meant, because it is a thousand times too
high or is given for one token, is refused rather than billed.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from gateway.config_section import Name, Section
from policies.pricing import NANOS, PriceList, Tariff

CURRENCY = "USD"
"""The currency of every price, ISO 4217."""

_LEAST, _MOST = Decimal("0.0001"), Decimal(1000)
_UNITS = "usd_per_million_tokens or usd_per_hour"


def _price(value: object) -> Decimal:
    """The number as it is written in the file, not as binary floating point has it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("a price is a number of US dollars")
    price = Decimal(str(value))
    if not price.is_finite() or price < 0:
        raise ValueError("a price is not negative and not infinite")
    if 0 < price < _LEAST:
        raise ValueError(
            f"{price:f} is implausible: less than {_LEAST} US dollars; is it the price of one "
            "token, or of a second?"
        )
    if price > _MOST:
        raise ValueError(
            f"{price:f} is implausible: more than {_MOST} US dollars; is it in cents, or for "
            "another unit?"
        )
    return price


Usd = Annotated[Decimal, BeforeValidator(_price)]
"""US dollars: 0, or from 0.0001 to 1000."""


def _named_unit(value: Any) -> Any:
    """Refuse a bare number, no number at all, and keys that name a price without its unit."""
    if isinstance(value, int | float | Decimal):
        raise ValueError(f"{value} is a price without a unit; write {_UNITS}")
    if value == []:
        raise ValueError(f"there is no price; write {_UNITS}")
    return _known_units(value, TariffSection, _UNITS)


def _named_rent(value: Any) -> Any:
    """As `_named_unit`, for machines."""
    if isinstance(value, int | float | Decimal):
        raise ValueError(f"{value} is a price without a unit; write usd_per_hour")
    return _known_units(value, MachineSection, "usd_per_hour")


def _known_units(value: Any, section: type[Section], units: str) -> Any:
    for key in value if isinstance(value, Mapping) else ():
        if key not in section.model_fields and any(
            word in str(key) for word in ("price", "usd", "cost", "per_", "rate")
        ):
            raise ValueError(f"'{key}' is a price without a unit that is known; write {units}")
    return value


class TariffSection(Section):
    """`[[prices.engines.<name>]]` and `[[prices.hosted.<name>]]`: a price from a day on."""

    effective: date
    """First day, in UTC, on which it holds; it ends where the next of the same name begins."""
    usd_per_million_tokens: Usd | None = None
    """US dollars for a million tokens read."""
    usd_per_hour: Usd | None = None
    """US dollars for an hour of engine time: reading, without the wait for it."""

    @model_validator(mode="after")
    def _refuse_no_price(self) -> "TariffSection":
        if self.usd_per_million_tokens is None and self.usd_per_hour is None:
            raise ValueError(f"there is no price; write {_UNITS}")
        return self


class MachineSection(Section):
    """`[prices.machines.<name>]`: something that is paid for by the hour, working or idle."""

    usd_per_hour: Usd
    """US dollars for an hour, e.g. the rent of a GPU."""


Tariffs = Annotated[
    tuple[Annotated[TariffSection, BeforeValidator(_named_unit)], ...],
    Field(strict=False),
    BeforeValidator(_named_unit),
]


def _hosted(usd_per_million_tokens: str) -> tuple[TariffSection, ...]:
    price = Decimal(usd_per_million_tokens)
    return (TariffSection(effective=date(2026, 10, 1), usd_per_million_tokens=price),)


class PricesSection(Section):
    """`[prices]`: what things cost. An engine without a price is unpriced, never free."""

    engines: dict[Name, Tariffs] = {}
    """Engine name → tariffs, the price of its work for the keys that use it."""
    hosted: dict[Name, Tariffs] = {
        "jev": _hosted("0.042"),
        "clef-flash": _hosted("0.09"),
        "clef": _hosted("0.24"),
    }
    """Hosted model → tariffs, for `tiergate usage compare`. The defaults are the list prices of
    October 2026: Jev at TypeSafe, Clef and Clef-flash at Workers AI. Look them up again."""
    machines: dict[Name, Annotated[MachineSection, BeforeValidator(_named_rent)]] = {}
    """Machine → its rent, for `tiergate usage compare`."""

    @model_validator(mode="after")
    def _refuse_two_prices_for_a_day(self) -> "PricesSection":
        for table, named in (("engines", self.engines), ("hosted", self.hosted)):
            for name, tariffs in named.items():
                days = [tariff.effective for tariff in tariffs]
                if len(set(days)) < len(days):
                    raise ValueError(f"prices.{table}.{name} has two prices for the same day")
        for name, tariffs in self.hosted.items():
            if any(tariff.usd_per_hour is not None for tariff in tariffs):
                raise ValueError(f"prices.hosted.{name} is priced by the hour; write tokens only")
        return self


class PricingSection(Section):
    """`[pricing]`: what a key pays for: every token that every engine read for it."""

    cached: Literal["zero", "full"] = "zero"
    """A question that is answered from a memo costs no tokens (`zero`), or as many as its first
    reading (`full`). Its request is counted either way."""


def engine_prices(prices: PricesSection) -> PriceList:
    """What the engines cost."""
    return PriceList(CURRENCY, _tariffs(prices.engines))


def hosted_prices(prices: PricesSection) -> PriceList:
    """What hosted models cost."""
    return PriceList(CURRENCY, _tariffs(prices.hosted))


def nanos(usd: Decimal) -> int:
    """Nano-dollars, rounded half to even."""
    return int((usd * NANOS).to_integral_value())


def _tariffs(named: Mapping[str, tuple[TariffSection, ...]]) -> dict[str, tuple[Tariff, ...]]:
    return {
        name: tuple(
            Tariff(
                int(datetime.combine(one.effective, time(), UTC).timestamp()),
                nanos(one.usd_per_million_tokens or Decimal(0)),
                nanos(one.usd_per_hour or Decimal(0)),
            )
            for one in sorted(tariffs, key=lambda one: one.effective)
        )
        for name, tariffs in named.items()
    }
