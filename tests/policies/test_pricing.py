"""Prices: exact to the nano, in any order, and never zero by accident."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.pricing import (
    NANOS,
    PriceList,
    Tariff,
    break_even_tokens,
)

HOUR_US = 3600 * 10**6


@pytest.mark.parametrize(
    ("tariff", "tokens", "busy_us", "nanos"),
    [
        (Tariff(0, million_tokens=42_000_000), 1, 0, 42),
        (Tariff(0, million_tokens=42_000_000), 1_000_000, 0, 42_000_000),
        (Tariff(0, million_tokens=90_000_000), 0, 10 * HOUR_US, 0),
        (Tariff(0, hour=790_000_000), 10**9, HOUR_US, 790_000_000),
        (Tariff(0, hour=790_000_000), 0, 1_000_000, 219_444),
        (Tariff(0, million_tokens=1_000_000, hour=3_600_000_000), 5, 1_000_000, 1_000_005),
        (Tariff(0, million_tokens=500_000), 1, 0, 1),  # half a nano goes up
        (Tariff(0, million_tokens=499_999), 1, 0, 0),
        (Tariff(0), 10**12, HOUR_US, 0),
    ],
)
def test_the_table_of_prices(tariff: Tariff, tokens: int, busy_us: int, nanos: int) -> None:
    assert tariff.cost(tokens, busy_us) == nanos


@given(
    st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12)
)
def test_a_cost_is_within_half_a_nano_of_the_exact_one(
    million: int, hour: int, tokens: int, busy_us: int
) -> None:
    exact = Fraction(tokens * million, 10**6) + Fraction(busy_us * hour, HOUR_US)

    cost = Tariff(0, million, hour).cost(tokens, busy_us)

    assert abs(cost - exact) <= Fraction(1, 2)


def test_a_tariff_holds_from_its_first_second_until_the_next() -> None:
    first, second = Tariff(100, 1_000_000), Tariff(200, 2_000_000)
    prices = PriceList("USD", {"a": (first, second)})

    found = [prices.tariff("a", at_s) for at_s in (99.9, 100, 199.9, 200, 1e9)]

    assert found == [None, first, first, second, second]


def test_an_engine_without_a_price_is_unpriced_and_a_free_one_is_free() -> None:
    prices = PriceList("USD", {"free": (Tariff(0),)})

    free = prices.tariff("free", 1.0)
    assert free is not None
    assert free.cost(1000, 1000) == 0
    assert prices.tariff("other", 1.0) is None
    assert prices.unpriced(["free", "other"], 1.0) == ("other",)


def test_the_version_moves_with_every_price_and_with_nothing_else() -> None:
    def version(tariffs: Mapping[str, Sequence[Tariff]], currency: str = "USD") -> str:
        return PriceList(currency, tariffs).version

    base = {"a": (Tariff(0, 1),), "b": (Tariff(0, 2),)}
    assert version(base) == version({"b": (Tariff(0, 2),), "a": (Tariff(0, 1),)})
    others: list[Mapping[str, Sequence[Tariff]]] = [
        {**base, "a": (Tariff(0, 2),)},
        {**base, "a": (Tariff(1, 1),)},
        {**base, "a": (Tariff(0, 1, 1),)},
        {**base, "c": (Tariff(0, 1),)},
        {"a": base["a"]},
    ]
    versions = [version(base), version(base, "EUR"), *(version(other) for other in others)]
    assert len(set(versions)) == len(versions)


def test_owning_breaks_even_where_the_hosted_bill_is_as_high() -> None:
    hosted = Tariff(0, million_tokens=int(Decimal("0.09") * NANOS))
    hour = int(Decimal("0.79") * NANOS)

    tokens = break_even_tokens(hosted, hour, hours=24)

    assert tokens == pytest.approx(0.79 * 24 / 0.09 * 1e6)
    assert hosted.cost(round(tokens or 0)) == pytest.approx(hour * 24)
    assert break_even_tokens(Tariff(0), hour, hours=24) is None


@given(
    tariffs=st.lists(
        st.lists(
            st.builds(Tariff, st.integers(0, 9), st.integers(0, 10**10), st.integers(0, 10**12)),
            min_size=1,
            max_size=3,
            unique_by=lambda tariff: tariff.from_s,
        ),
        min_size=1,
        max_size=3,
    ),
    tokens=st.lists(st.integers(0, 10**7), min_size=3, max_size=3),
    times=st.integers(1, 9),
    at_s=st.integers(9, 12),
)
def test_a_ceiling_is_never_below_the_tariffs(
    tariffs: list[list[Tariff]], tokens: list[int], times: int, at_s: int
) -> None:
    names = [str(n) for n in range(len(tariffs))]
    ordered = [sorted(each, key=lambda tariff: tariff.from_s) for each in tariffs]
    prices = PriceList("USD", dict(zip(names, ordered, strict=True)))

    ceiling = prices.ceiling(names, at_s, 8_000_000)

    assert ceiling is not None
    in_force = list(filter(None, (prices.tariff(name, at_s) for name in names)))
    assert len(in_force) == len(names)
    read = tokens[: len(names)]
    cost = sum(map(lambda one, n: one.cost(n, 8_000_000 * times), in_force, read))
    assert cost <= ceiling.cost(sum(read), times)


def test_a_ceiling_holds_as_long_as_its_tariffs() -> None:
    prices = PriceList("USD", {"a": (Tariff(10, 1), Tariff(20, 2)), "b": (Tariff(5, 7),)})

    held = prices.ceiling(["a", "b"], 12, 0)

    assert held is not None
    assert (held.from_s, held.until_s, held.million_tokens) == (10, 20, 7)
    assert prices.ceiling(["a", "b"], 7, 0) is None
    later = prices.ceiling(["a", "b"], 20, 0)
    assert later is not None
    assert later.until_s == float("inf")
