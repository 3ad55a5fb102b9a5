"""Plots of the cascade bench, from its results alone; only this file needs matplotlib."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

_COLOURS = {"cascade": "#1f6f9f", "random": "#8a94a0", "oracle": "#c58a2b"}
_DPI = 110
_MARK_PIXELS = 2.0
_BESIDE = ((4, -10), (-4, -10), (4, 5), (-4, 5), (4, -19), (-4, -19), (4, 14), (-4, 14))
"""Where a label may stand from its point, in points, the best place first."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a policy came to, in percent, with the interval of `y`."""

    name: str
    x: float
    y: float
    low: float
    high: float


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
    figure.legend(
        *places[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3
    )
    figure.draw_without_rendering()  # so that it is known where points lie, and what labels cover
    for axes, one in zip(places, sets.values(), strict=False):
        label_points(axes, _certified(one))
    return figure


def _cost(axes: Axes, name: str, one: Mapping[str, Any]) -> None:
    steps = len(one["curves"]["cascade"])
    shares = [100 * at / (steps - 1) for at in range(steps)]
    for kind in ("oracle", "cascade", "random"):
        values = [100 * value for value in one["curves"][kind]]
        axes.plot(shares, values, color=_COLOURS[kind], label=kind, lw=1.6)
    for point in _certified(one):
        errors = [[point.y - point.low], [point.high - point.y]]
        axes.errorbar(point.x, point.y, yerr=errors, fmt="o", ms=4, color="#1d2733", lw=1)
    axes.set_title(f"{name} (n = {one['rows']})")
    axes.set_xlabel("% of questions that go up")
    axes.set_ylabel("% right")


def _certified(one: Mapping[str, Any]) -> list[Point]:
    return [
        Point(
            policy["policy"].removeprefix("certified "),
            *(100 * policy[part] for part in ("escalated", "accuracy")),
            *(100 * end for end in policy["interval"]),
        )
        for policy in one["policies"]
        if policy["policy"].startswith("certified")
    ]


def label_points(axes: Axes, points: Sequence[Point]) -> None:
    """Names each point beside it: where no other label and no interval is, and few of the curves.

    Points that lie on one another have one label. The layout must be settled.
    """
    names: dict[tuple[float, float], list[str]] = {}
    for point in points:
        names.setdefault((point.x, point.y), []).append(point.name)
    taken = [_interval(axes, point) for point in points]
    for at, known_as in names.items():
        label = axes.annotate(
            ", ".join(known_as), at, xytext=_BESIDE[0], textcoords="offset points", fontsize=7
        )
        _place(label, min(_BESIDE, key=lambda place: _covered(axes, label, place, taken)))
        taken.append(label.get_window_extent())


def _place(label: Annotation, place: tuple[float, float]) -> None:
    label.xyann = place
    label.set_horizontalalignment("left" if place[0] > 0 else "right")


def _covered(
    axes: Axes, label: Annotation, place: tuple[float, float], taken: Sequence[Bbox]
) -> int:
    """How bad the place is: points of curves that the label would lie on; much for the rest."""
    _place(label, place)
    box = label.get_window_extent()
    outside = not (axes.bbox.contains(box.x0, box.y0) and axes.bbox.contains(box.x1, box.y1))
    curves = [line.get_transform().transform(line.get_xydata()) for line in axes.get_lines()]
    hit = sum(box.contains(x, y) for curve in curves for x, y in curve)
    return hit + 1000 * (outside + box.count_overlaps(list(taken)))


def _interval(axes: Axes, point: Point) -> Bbox:
    """What the point and its error bar cover, in pixels."""
    ends = axes.transData.transform([(point.x, point.low), (point.x, point.high)])
    return Bbox(ends).padded(_MARK_PIXELS)


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
