"""A usage report as `GET /v1/usage` sends it and `tiergate usage` shows it: one value for both."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from gateway.ledger.reports import ALL_BY, By, Reports, UsageQuery, UsageRow, measures
from policies.pricing import NANOS

Report: TypeAlias = dict[str, Any]
"""JSON: `since`, `until`, `by`, `currency`, `rows`, `total`; see docs/accounting.md."""

PATH = "/v1/usage"

_EPOCH = date(1970, 1, 1)
_DEFAULT_SINCE = "30d"
_PARAMETERS = ("by", "since", "until")


def usage_query(parameters: Mapping[str, str], today: date) -> UsageQuery:
    """The query behind `by`, `since` and `until`, for all keys.

    `since` is a day or `Nd`, the last N days with today among them; `until` is the last day.

    Raises:
        ValueError: with a sentence for the caller.
    """
    if unknown := sorted(set(parameters) - set(_PARAMETERS)):
        raise ValueError(f"there is no '{unknown[0]}'; there are: {', '.join(_PARAMETERS)}")
    until = _day("until", parameters.get("until") or today.isoformat())
    since = _since(parameters.get("since") or _DEFAULT_SINCE, today)
    if until < since:
        raise ValueError(f"until is {until}, before since, which is {since}")
    by = _by(parameters.get("by", ""))
    measures(by)
    return UsageQuery((since - _EPOCH).days, (until - _EPOCH).days + 1, by)


def today_utc(now_s: float) -> date:
    """The day around `now_s` (unix seconds)."""
    return datetime.fromtimestamp(now_s, UTC).date()


def day_of(number: int) -> date:
    """The day with this number, counted from 1970-01-01."""
    return _EPOCH + timedelta(days=number)


def number_of(day: date) -> int:
    """Days from 1970-01-01."""
    return (day - _EPOCH).days


def report(reports: Reports, query: UsageQuery, currency: str) -> Report:
    """The report; blocks while the ledger is read.

    Raises:
        StoreError: the ledger cannot be read.
    """
    names = measures(query.by)
    rows = reports.usage(query)
    whole = UsageRow(())
    for row in rows:
        added = {name: getattr(whole, name) + getattr(row, name) for name in names}
        whole = replace(whole, **added)
    return {
        "since": day_of(query.since_day).isoformat(),
        "until": day_of(query.until_day - 1).isoformat(),
        "by": list(query.by),
        "currency": currency,
        "rows": [
            dict(zip(query.by, row.dimensions, strict=True)) | _shown(row, names) for row in rows
        ],
        "total": _shown(whole, names),
    }


def _shown(row: UsageRow, names: Sequence[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name in names:
        if name == "busy_us":
            shown["seconds"] = row.busy_us / 10**6
        elif name == "nanos":
            nothing_priced = row.unpriced and row.unpriced == row.requests
            shown["cost"] = None if nothing_priced else money(row.nanos)
        else:
            shown[name] = getattr(row, name)
    return shown


def money(nanos: int) -> str:
    """The amount in the currency, as a decimal without an exponent: `0.00000042`."""
    return f"{(Decimal(nanos) / NANOS).normalize():f}"


def _by(names: str) -> tuple[By, ...]:
    found: list[By] = []
    for name in filter(None, (one.strip() for one in names.split(","))):
        by = next((one for one in ALL_BY if one == name), None)
        if by is None:
            raise ValueError(f"nothing can be broken down by '{name}'; by: {', '.join(ALL_BY)}")
        if by not in found:
            found.append(by)
    return tuple(found)


def _since(said: str, today: date) -> date:
    if days := re.fullmatch(r"([1-9]\d{0,4})d", said):
        return today - timedelta(days=int(days[1]) - 1)
    return _day("since", said)


def _day(name: str, said: str) -> date:
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", said):
            raise ValueError
        return date.fromisoformat(said)
    except ValueError:
        example = "2026-12-01 or 30d" if name == "since" else "2026-12-31"
        raise ValueError(f"'{said}' is not a day for {name}; write it like {example}") from None


Fetch: TypeAlias = Callable[[Mapping[str, str]], Report]
"""A report for parameters, from this machine or through a gateway."""
