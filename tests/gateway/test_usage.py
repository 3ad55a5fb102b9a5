"""Usage reports as values: what parameters mean, and what sums look like."""

import re
from collections.abc import Mapping
from datetime import date

import pytest

from gateway.ledger.reports import UsageQuery, UsageRow
from gateway.usage import money, number_of, report, usage_query
from tests.gateway.ledger.charges import DAY

TODAY = date(2026, 12, 15)


@pytest.mark.parametrize(
    ("parameters", "since", "until", "by"),
    [
        ({}, "2026-11-16", "2026-12-16", ()),
        ({"since": "1d"}, "2026-12-15", "2026-12-16", ()),
        ({"since": "2026-12-01"}, "2026-12-01", "2026-12-16", ()),
        ({"since": "2024-02-29", "until": "2024-02-29"}, "2024-02-29", "2024-03-01", ()),
        ({"by": "key, day,key,"}, "2026-11-16", "2026-12-16", ("key", "day")),
    ],
)
def test_parameters_say_days_of_which_the_last_is_included(
    parameters: Mapping[str, str], since: str, until: str, by: tuple[str, ...]
) -> None:
    query = usage_query(parameters, TODAY)

    assert query.since_day == number_of(date.fromisoformat(since))
    assert query.until_day == number_of(date.fromisoformat(until))
    assert query.by == by


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"since": "yesterday"}, "'yesterday' is not a day for since"),
        ({"since": "0d"}, "2026-12-01 or 30d"),
        ({"until": "2026-02-30"}, "'2026-02-30'"),
        ({"until": "20261231"}, "'20261231'"),
        ({"since": "2026-12-02", "until": "2026-12-01"}, "before since"),
        ({"by": "hour"}, "'hour'"),
        ({"by": "engine,reason"}, "not by both"),
        ({"sicne": "1d"}, "there is no 'sicne'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_a_sentence(
    parameters: Mapping[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        usage_query(parameters, TODAY)


@pytest.mark.parametrize(
    ("nanos", "shown"),
    [
        (0, "0"),
        (1, "0.000000001"),
        (420, "0.00000042"),
        (10**9, "1"),
        (12 * 10**10, "120"),
        (123456789 * 10**9 + 5, "123456789.000000005"),
    ],
)
def test_money_is_a_decimal_without_an_exponent(nanos: int, shown: str) -> None:
    assert money(nanos) == shown


class Rows:
    """Reports that were written by hand."""

    def __init__(self, *rows: UsageRow) -> None:
        self.rows = list(rows)

    def usage(self, query: UsageQuery) -> list[UsageRow]:
        return self.rows


def test_the_total_is_the_sum_and_unpriced_work_is_not_free() -> None:
    rows = Rows(
        UsageRow(("a",), requests=2, tokens=5, nanos=7),
        UsageRow(("b",), requests=1, tokens=1, unpriced=1),
        UsageRow(("c",), requests=3, tokens=1, unpriced=1, nanos=10**9),
    )

    said = report(rows, UsageQuery(DAY, DAY + 1, ("key",)), "USD")

    assert [row["cost"] for row in said["rows"]] == ["0.000000007", None, "1"]
    assert said["total"]["requests"] == 6
    assert said["total"]["unpriced"] == 2
    assert said["total"]["cost"] == "1.000000007"
    assert (said["since"], said["until"]) == ("2026-12-02", "2026-12-02")
