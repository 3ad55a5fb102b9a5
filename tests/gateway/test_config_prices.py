"""Prices in config.toml: exact as written, with a unit, plausible."""

import re
from pathlib import Path

import pytest

from gateway.config import Settings
from gateway.config_file import ConfigError, load
from gateway.config_prices import engine_prices, hosted_prices

ROOT = Path(__file__).parents[2]
DAY = "effective = 2026-10-01\n"


def test_a_price_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        "[[prices.engines.starter]]\neffective = 2026-12-01\nusd_per_million_tokens = 0.07\n"
        "[[prices.engines.starter]]\neffective = 2026-10-01\nusd_per_million_tokens = 0.042\n"
        "usd_per_hour = 0.3\n"
        "[prices.machines.gpu-1]\nusd_per_hour = 1\n"
    )

    prices = engine_prices(load(path).settings.prices)

    earlier, later = prices.tariffs["starter"]
    assert (earlier.million_tokens, earlier.hour) == (42_000_000, 300_000_000)
    assert (later.million_tokens, later.hour) == (70_000_000, 0)
    assert later.from_s == 1_796_083_200  # 2026-12-01T00:00Z
    assert prices.tariff("starter", later.from_s - 0.001) == earlier
    assert prices.tariff("starter", later.from_s) == later
    assert (earlier.cost(3), later.cost(3)) == (126, 210)


def test_no_engine_has_a_price_by_default_and_hosted_models_have() -> None:
    settings = Settings()

    assert engine_prices(settings.prices).unpriced(["starter"], 2e9) == ("starter",)
    assert set(hosted_prices(settings.prices).tariffs) == {"jev", "clef-flash", "clef"}


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("[[prices.engines.starter]]\n" + DAY + "price = 0.04\n", "'price'", "unit"),
        ("[[prices.engines.starter]]\n" + DAY + "usd = 0.04\n", "'usd'", "unit"),
        ("[[prices.engines.starter]]\n" + DAY + "usd_per_token = 1\n", "'usd_per_token'", "unit"),
        ("[prices.engines]\nstarter = 0.04\n", "prices.engines.starter", "unit"),
        ("[prices.hosted]\njev = 0.04\n", "prices.hosted.jev", "unit"),
        (
            "[[prices.engines.starter]]\n" + DAY + "usd_per_million_tokens = 0.000042\n",
            "usd_per_million_tokens",
            "price of one token",
        ),
        (
            "[[prices.engines.starter]]\n" + DAY + "usd_per_million_tokens = 4200\n",
            "usd_per_million_tokens",
            "cents",
        ),
        (
            "[[prices.hosted.jev]]\n" + DAY + "usd_per_million_tokens = -0.1\n",
            "usd_per_million_tokens",
            "not negative",
        ),
        (
            "[[prices.hosted.jev]]\n" + DAY + "usd_per_million_tokens = nan\n",
            "usd_per_million_tokens",
            "infinite",
        ),
        (
            "[[prices.hosted.jev]]\n" + DAY + "usd_per_million_tokens = '0.042'\n",
            "usd_per_million_tokens",
            "number",
        ),
        (
            "[[prices.hosted.jev]]\n" + DAY + "usd_per_million_tokens = true\n",
            "usd_per_million_tokens",
            "number",
        ),
        ("[prices.machines.gpu]\nusd_per_hour = 79000\n", "prices.machines.gpu.usd_per_hour", "im"),
        ("[[prices.engines.starter]]\n" + DAY, "prices.engines.starter", "no price"),
        ("[[prices.engines.starter]]\nusd_per_hour = 1\n", "effective", "required"),
        ("[[prices.engines.strater]]\n" + DAY + "usd_per_hour = 1\n", "strater", "starter"),
        ("[[prices.hosted.jev]]\n" + DAY + "usd_per_hour = 1\n", "prices.hosted.jev", "hour"),
        (
            ("[[prices.engines.starter]]\n" + DAY + "usd_per_hour = 1\n") * 2,
            "prices.engines.starter",
            "same day",
        ),
        ("[prices.engines]\nstarter = []\n", "prices.engines.starter", "no price"),
        ("[prices.machines]\ngpu = 0.79\n", "prices.machines.gpu", "without a unit"),
        ("[prices.machines.gpu]\nprice = 0.79\n", "'price'", "write usd_per_hour"),
        ("[pricing]\ncached = 'half'\n", "pricing.cached", "'full'"),
    ],
)
def test_a_price_that_cannot_be_meant_is_refused_by_name(
    tmp_path: Path, text: str, field: str, words: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(ConfigError) as refused:
        load(path)

    assert field in str(refused.value)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1  # one fault, one line


def test_a_price_for_an_engine_that_is_not_there_is_shown_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\n\n[[prices.engines.strater]]\n" + DAY + "usd_per_hour = 1\n")

    with pytest.raises(ConfigError) as refused:
        load(path)

    assert str(refused.value).startswith(f"{path}:3: prices.engines.strater is the price of")


def test_zero_is_a_price(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[[prices.engines.starter]]\n" + DAY + "usd_per_hour = 0\n")

    prices = engine_prices(load(path).settings.prices)

    free = prices.tariff("starter", 2e9)
    assert free is not None
    assert free.cost(10**6, 10**6) == 0


def test_the_prices_of_the_documentation_are_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "accounting.md").read_text(encoding="utf-8")
    path = tmp_path / "config.toml"
    path.write_text("".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)))

    prices = load(path).settings.prices

    assert [tariff.million_tokens for tariff in engine_prices(prices).tariffs["starter"]] == [
        20_000_000,
        15_000_000,
    ]
    assert list(prices.machines) == ["gpu"]
