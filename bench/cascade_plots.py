"""Plots of the cascade bench, from its results alone; only this file needs matplotlib."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = {"cascade": "#1f6f9f", "random": "#8a94a0", "oracle": "#c58a2b"}
_DPI = 110


def draw(found: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the plots and gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    made = []
    for number, (title, sets) in enumerate(_pairs(found).items(), start=1):
        made.append(_saved(_costs(title, sets), folder / f"cascade-{number}-accuracy.png"))
    made.append(_saved(_risks(_smalls(found)), folder / "cascade-risk.png"))
    made.append(_saved(_violations(_smalls(found)), folder / "cascade-violations.png"))
    return made


def _pairs(found: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Title → set → findings, of those with two engines."""
    return {
        title: sets
        for title, sets in found.items()
        if isinstance(sets, dict)
        and sets
        and all(isinstance(one, dict) and "large" in one for one in sets.values())
    }


def _smalls(found: Mapping[str, Any]) -> dict[str, Any]:
    """Set → findings of the starter, wherever it was the small engine."""
    smalls: dict[str, Any] = {}
    for title, sets in found.items():
        if title.startswith("starter"):
            smalls |= {name: one["small"] for name, one in sets.items()}
    return smalls


def _costs(title: str, sets: Mapping[str, Any]) -> Figure:
    columns = min(3, len(sets))
    rows = -(-len(sets) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.9 * rows), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(rows, columns, squeeze=False)
    places = [axes for row in grid for axes in row]
    for axes, (name, one) in zip(places, sets.items(), strict=False):
        _cost(axes, name, one)
    for axes in places[len(sets) :]:
        axes.set_visible(False)
    places[0].legend(frameon=False, loc="best")
    return figure


def _cost(axes: Axes, name: str, one: Mapping[str, Any]) -> None:
    steps = len(one["curves"]["cascade"])
    shares = [100 * at / (steps - 1) for at in range(steps)]
    for kind in ("oracle", "cascade", "random"):
        values = [100 * value for value in one["curves"][kind]]
        axes.plot(shares, values, color=_COLOURS[kind], label=kind, lw=1.6)
    certified = [policy for policy in one["policies"] if policy["policy"].startswith("certified")]
    for policy in certified:
        at = (100 * policy["escalated"], 100 * policy["accuracy"])
        low, high = (100 * end for end in policy["interval"])
        errors = [[at[1] - low], [high - at[1]]]
        axes.errorbar(*at, yerr=errors, fmt="o", ms=4, color="#1d2733", lw=1)
        risk = policy["policy"].removeprefix("certified ")
        axes.annotate(risk, at, xytext=(4, -10), textcoords="offset points", fontsize=7)
    axes.set_title(f"{name} (n = {one['rows']})")
    axes.set_xlabel("% of questions that go up")
    axes.set_ylabel("% right")


def _risks(smalls: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, small in smalls.items():
        coverage, error = small["risk_coverage"]
        label = f"{name} (AUROC {small['informative']:.2f})"
        axes.plot([100 * c for c in coverage], [100 * e for e in error], label=label, lw=1.4)
    for risk in (5, 10):
        axes.axhline(risk, color="#8a94a0", lw=0.8, ls="--")
    axes.set_xlabel("% of answers kept, the likeliest first")
    axes.set_ylabel("% wrong of those kept")
    axes.set_title("The starter: what keeping more of its answers costs")
    figure.legend(frameon=False, fontsize=8, loc="outside right center")
    return figure


def _violations(smalls: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    names = list(smalls)
    for offset, (field, label, colour) in enumerate(
        (
            ("violated", "with a promise (delta 10 %)", _COLOURS["cascade"]),
            ("naive_violated", "lowest floor that looks good", _COLOURS["oracle"]),
        )
    ):
        drawings = [small["violations"]["0.1"][1] for small in smalls.values()]
        heights = [100 * each[field] for each in drawings]
        places = [at + 0.38 * offset for at in range(len(names))]
        axes.bar(places, heights, width=0.36, color=colour, label=label)
    axes.axhline(10, color="#1d2733", lw=0.8, ls="--")
    axes.set_xticks([at + 0.19 for at in range(len(names))], names, rotation=30, ha="right")
    axes.set_ylabel("% of 500 drawings")
    axes.set_ylim(0, 80)
    axes.set_title("Floors riskier than 10 %, chosen from 500 labels")
    axes.legend(frameon=False, loc="upper left")
    return figure


def _saved(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path
