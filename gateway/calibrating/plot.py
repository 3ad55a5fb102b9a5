"""Small charts as SVG text: axes, lines, steps, bars and dots. Knows nothing of what they show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_WIDTH, _HEIGHT = 380, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 24, 14, 44
_TICKS = 5

Pairs = Sequence[tuple[float, float]]


@dataclass(slots=True)
class Axis:
    """One direction of a chart."""

    title: str
    low: float
    high: float
    percent: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the ends, in [0, 1]; beyond them at the end."""
        width = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / width)) if width > 0 else 0.0

    def ticks(self) -> list[tuple[float, str]]:
        """Round values between the ends, and how they are written."""
        width = self.high - self.low
        if width <= 0:
            return [(self.low, f"{self.low:.3g}")]
        decade = 10.0 ** math.floor(math.log10(width / _TICKS))
        step = decade * next(k for k in (1, 2, 5, 10) if width / (k * decade) <= _TICKS)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [step * i for i in range(first, last + 1)]
        if self.percent:
            digits = max(0, -math.floor(math.log10(step * 100) + 1e-9))
            return [(value, f"{value * 100:.{digits}f} %") for value in values]
        return [(value, f"{value:.6g}") for value in values]


@dataclass(slots=True)
class Plot:
    """A chart that is being drawn. `describes` is read to those who do not see it."""

    x: Axis
    y: Axis
    describes: str
    _marks: list[str] = field(default_factory=list)

    def line(self, pairs: Pairs, kind: str) -> None:
        """A line through points; `kind` is its class: `main`, `other` or `guide`."""
        if pairs:
            points = " ".join(f"{self._at_x(x):.1f},{self._at_y(y):.1f}" for x, y in pairs)
            self._marks.append(f'<polyline class="{kind}" points="{points}"/>')

    def dot(self, x: float, y: float, says: str, kind: str = "main") -> None:
        """A point that says something when it is pointed at."""
        self._marks.append(
            f'<circle class="{kind}" cx="{self._at_x(x):.1f}" cy="{self._at_y(y):.1f}" r="4.5">'
            f"<title>{escape(says)}</title></circle>"
        )

    def bar(self, low: float, high: float, y: float, says: str) -> None:
        """A bar from the bottom to y."""
        x0, x1, top = self._at_x(low), self._at_x(high), self._at_y(y)
        bottom = self._at_y(self.y.low)
        self._marks.append(
            f'<rect class="bar" x="{x0:.1f}" y="{top:.1f}" width="{max(1.0, x1 - x0 - 1):.1f}" '
            f'height="{max(0.0, bottom - top):.1f}"><title>{escape(says)}</title></rect>'
        )

    def note(self, x: float, y: float, text: str) -> None:
        """Words beside a point, to its right or, near the right end, to its left."""
        right_half = self.x.share(x) > 0.6
        anchor, shift = ("end", -8) if right_half else ("start", 8)
        self._marks.append(
            f'<text class="note" x="{self._at_x(x) + shift:.1f}" y="{self._at_y(y) - 7:.1f}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def svg(self) -> str:
        """The chart as one element."""
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{escape(self.describes)}">{self._axes()}{"".join(self._marks)}</svg>'
        )

    def _axes(self) -> str:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = []
        for value, text in self.x.ticks():
            x = self._at_x(value)
            parts.append(
                f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
            )
            parts.append(_text(x, bottom + 15, "middle", text))
        for value, text in self.y.ticks():
            y = self._at_y(value)
            parts.append(
                f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
            )
            parts.append(_text(_LEFT - 6, y + 4, "end", text))
        middle = (_LEFT + right) / 2
        parts.append(_text(middle, _HEIGHT - 8, "middle", self.x.title, "title"))
        up = (_TOP + bottom) / 2
        parts.append(
            f'<text class="title" transform="translate(12 {up:.1f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y.title)}</text>'
        )
        return "".join(parts)

    def _at_x(self, value: float) -> float:
        return _LEFT + self.x.share(value) * (_WIDTH - _LEFT - _RIGHT)

    def _at_y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - self.y.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _text(x: float, y: float, anchor: str, text: str, kind: str = "tick") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
