"""Usage reports on standard output: for people, for spreadsheets, for programs."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from gateway.cli.screen import screen
from gateway.cli.whole import print_whole
from gateway.focus import focus_columns, focus_rows
from gateway.usage import Report
from gateway.usage_compare import Comparison

FORMATS = ("table", "json", "csv", "jsonl", "focus")

_KINDS = ("nouls", "choices", "scores")
_SELDOM = ("cached", "failed", "escalated", "unpriced")


def print_report(report: Report, form: str) -> None:
    """The report in one of `FORMATS`; what has no price is told on standard error with focus."""
    match form:
        case "json":
            print(json.dumps(report, ensure_ascii=False))
        case "jsonl":
            for row in report["rows"]:
                print(json.dumps(row, ensure_ascii=False))
        case "csv":
            _csv([*report["by"], *report["total"]], report["rows"])
        case "focus":
            _focus(report)
        case _:
            _table(report)


def print_comparison(comparison: Comparison, form: str) -> None:
    """The comparison as a table with its verdict, or as JSON."""
    if form == "json":
        print(json.dumps(comparison, ensure_ascii=False))
        return
    mine, currency = comparison["owned"], comparison["currency"]
    table = Table("", f"cost, {currency}", "owning pays from tokens a day")
    if mine["cost"] is not None:
        table.add_row(f"owned: {mine['machine_hours']:g} machine hours", mine["cost"], "")
    for offer in comparison["hosted"]:
        even = offer["break_even_tokens_per_day"]
        table.add_row(
            f"hosted {offer['model']}",
            "unpriced" if offer["cost"] is None else offer["cost"],
            "" if even is None else f"{even:,.0f}",
        )
    console = screen()
    console.print(
        f"{comparison['since']} to {comparison['until']}: {comparison['tokens']:,} tokens, "
        f"{comparison['tokens_per_day']:,} a day, {comparison['engine_hours']:g} engine hours",
    )
    print_whole(table)
    if mine["idle_share_at_least"] is not None:
        tenths = math.floor(mine["idle_share_at_least"] * 1000)
        console.print(f"idle: at least {tenths / 10:.1f} %")
    console.print(comparison["verdict"])
    console.print(comparison["note"])


def _csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _focus(report: Report) -> None:
    _csv(focus_columns(), focus_rows(report))
    if unpriced := report["total"]["unpriced"]:
        print(
            f"tiergate: {unpriced} requests have no price; their cost is 0 in this export",
            file=sys.stderr,
        )


def _table(report: Report) -> None:
    """For people: kinds of questions as one number, and nothing of what never happened."""
    by, total = report["by"], _brief(report["total"])
    columns = [name for name in total if total[name] or name not in _SELDOM]
    table = Table(title=f"{report['since']} to {report['until']}", title_justify="left")
    for name in by:
        table.add_column(name, overflow="fold", no_wrap=name == "day")
    for name in columns:
        table.add_column(
            f"cost, {report['currency']}" if name == "cost" else name, justify="right", no_wrap=True
        )
    for row in report["rows"] if by else ():
        brief = _brief(row)
        table.add_row(
            *(str(row[one]) for one in by), *(_cell(name, brief[name]) for name in columns)
        )
    table.add_section()
    head = ["total", *[""] * (len(by) - 1)] if by else []
    table.add_row(*head, *(_cell(name, total[name]) for name in columns))
    print_whole(table)


def _brief(sums: Mapping[str, Any]) -> dict[str, Any]:
    brief: dict[str, Any] = {}
    for name, value in sums.items():
        if name in _KINDS:
            brief["questions"] = brief.get("questions", 0) + value
        else:
            brief[name] = value
    return brief


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "unpriced"
    if name == "seconds":
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
