"""Usage as FOCUS 1.4 rows: the FinOps Open Cost and Usage Specification's Cost and Usage dataset.

Columns and values follow the specification (focus.finops.org, ratified 2026-06-04); what it has no
column for stands in `x_` columns. `docs/focus-1.4.schema.json` checks a row.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from gateway.ledger.reports import By
from gateway.usage import Report

BY: tuple[By, ...] = ("day", "key", "model", "engine")
"""The breakdown that a report must have to become FOCUS rows."""

_US = "tiergate (self-hosted)"


def focus_rows(report: Report) -> Iterator[dict[str, Any]]:
    """One row per day, key, model and engine; costs and quantities as decimals in strings.

    Work without a price has cost 0, because the specification allows no null there; it says so in
    its description and in `x_UnpricedRequests`. Its pricing quantity may be no null either.
    """
    for row in report["rows"]:
        yield _focus_row(row, report["currency"])


def focus_columns() -> list[str]:
    """The columns of a row, in their order."""
    nothing = {"day": "1970-01-01", "key": "", "model": "", "engine": ""}
    none = {"requests": 0, "tokens": 0, "seconds": 0.0, "cost": "0", "unpriced": 0}
    return list(_focus_row(nothing | none, ""))


def _focus_row(row: Mapping[str, Any], currency: str) -> dict[str, Any]:
    day = date.fromisoformat(row["day"])
    month = day.replace(day=1)
    priced = row["unpriced"] == 0
    cost = row["cost"] or "0"
    said = f"{row['tokens']} tokens read by {row['engine']} for {row['model']}"
    return {
        "BilledCost": cost,
        "BillingAccountId": "tiergate",
        "BillingAccountName": _US,
        "BillingCurrency": currency,
        "BillingPeriodEnd": _instant((month + timedelta(days=32)).replace(day=1)),
        "BillingPeriodStart": _instant(month),
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": said if priced else f"{said}; not all of it has a price",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _instant(day + timedelta(days=1)),
        "ChargePeriodStart": _instant(day),
        "ConsumedQuantity": str(row["tokens"]),
        "ConsumedUnit": "Tokens",
        "ContractedCost": cost,
        "EffectiveCost": cost,
        "HostProviderName": _US,
        "InvoiceIssuerName": _US,
        "ListCost": cost,
        "PricingQuantity": str(row["tokens"]),
        "PricingUnit": "Tokens",
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "Typed decisions",
        "ServiceProviderName": _US,
        "ServiceSubcategory": "Natural Language Processing",
        "SubAccountId": row["key"],
        "SubAccountName": row["key"],
        "x_Engine": row["engine"],
        "x_EngineSeconds": f"{row['seconds']:.6f}",
        "x_Model": row["model"],
        "x_Requests": str(row["requests"]),
        "x_UnpricedRequests": str(row["unpriced"]),
    }


def _instant(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"
