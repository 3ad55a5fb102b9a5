"""A run in words: the tables a person reads, the result files, the exit code."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.contenders import GATEWAY, REFERENCE
from bench.findings import Findings, Plan
from bench.verdict import Goal, Outcome, outcome

_MARKS = {"met": "[green]met[/]", "missed": "[red]missed[/]", "inconclusive": "[yellow]unclear[/]"}


def outcomes(findings: Findings, goals: Mapping[str, Goal]) -> list[Outcome]:
    """One per goal that this run measured, in the order of GOALS.toml."""
    measured = findings.quantities()
    foreign_share = findings.foreign_share()
    return [
        outcome(goal, measured[name][0], control=measured[name][1], foreign_share=foreign_share)
        for name, goal in goals.items()
        if name in measured
    ]


def show(findings: Findings, found: Sequence[Outcome], console: Console) -> None:
    """Print costs and goals."""
    if findings.costs:
        table = Table("body", "server", "CPU µs", "to A", "requests/s", title="CPU per request")
        for row in _cost_rows(findings):
            table.add_row(*row)
        console.print(table)
    table = Table("goal", "at most", "measured", "quartiles", "", title="Goals")
    for row, one in zip(_goal_rows(found), found, strict=True):
        table.add_row(*row[:-1], f"{_MARKS[one.verdict]} {one.why}".strip())
    console.print(table)


def write(
    path: Path,
    findings: Findings,
    found: Sequence[Outcome],
    plan: Plan,
    about: Mapping[str, str],
) -> None:
    """Write `path` (JSON: every sample) and the same name with `.md` (tables for people)."""
    content = {
        "about": dict(about),
        "plan": {name: getattr(plan, name) for name in plan.__slots__},
        "goals": {
            one.goal.name: {
                "at_most": one.goal.at_most,
                "median": one.measured.median,
                "quartiles": one.measured.quartiles,
                "verdict": one.verdict,
                "why": one.why,
            }
            for one in found
        },
        "findings": findings.as_json(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(_page(findings, found, about), encoding="utf-8")


def _page(findings: Findings, found: Sequence[Outcome], about: Mapping[str, str]) -> str:
    goal_rows = _goal_rows(found)
    parts = [
        "# `python -m bench edge`\n",
        _markdown(("", ""), [(word, text) for word, text in about.items()]),
        "## Goals\n",
        _markdown(("goal", "at most", "measured", "quartiles", "verdict"), goal_rows),
    ]
    if findings.costs:
        parts += [
            "## CPU per request\n",
            _markdown(
                ("body", "server", "CPU µs", "to A (quartiles)", "requests/s"),
                _cost_rows(findings),
            ),
            "A again over A, the control: "
            + ", ".join(
                f"{body} {1 / findings.control(body).median:.3f}" for body in findings.costs
            )
            + ".\n",
        ]
    if findings.health_s:
        rows = [
            (situation, *(f"{s * 1000:.2f}" for s in (statistics.median(p99), min(p99), max(p99))))
            for situation, p99 in findings.health_s.items()
        ]
        parts += [
            "## /health, p99 in milliseconds\n",
            _markdown(("situation", "median of rounds", "least", "most"), rows),
        ]
    if findings.rss_bytes:
        steps = " → ".join(f"{size / 2**20:.1f}" for size in findings.rss_bytes)
        parts += ["## Resident memory, MiB\n", f"Warm, then after each tenth: {steps}.\n"]
    return "\n".join(parts)


def _cost_rows(findings: Findings) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for body, by in findings.costs.items():
        for name, costs in by.items():
            ratio = findings.cpu(body, name, REFERENCE)
            low, high = ratio.quartiles
            rows.append(
                (
                    body,
                    f"**{name}**" if name == GATEWAY else name,
                    f"{statistics.median(c.cpu_us for c in costs):.0f}",
                    f"{ratio.median:.2f} ({low:.2f} to {high:.2f})",
                    f"{statistics.median(c.per_second for c in costs):,.0f}",
                )
            )
    return rows


def _goal_rows(found: Sequence[Outcome]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in found:
        low, high = one.measured.quartiles
        why = f": {one.why}" if one.why else ""
        rows.append(
            (
                one.goal.name,
                f"{one.goal.at_most:g}",
                f"{one.measured.median:.3f}",
                f"{low:.3f} to {high:.3f}",
                f"{one.verdict}{why}",
            )
        )
    return rows


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
