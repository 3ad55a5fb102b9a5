"""The plots of the cascade bench: each point has a label that can be read."""

import random
from itertools import combinations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.cascade_plots import Point, label_points


def labelled(points: list[Point]) -> tuple[Axes, list[str]]:
    """Axes as in the page, with these points on them, and what the labels say."""
    figure = Figure(figsize=(3.4, 2.9), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100])
    figure.draw_without_rendering()
    label_points(axes, points)
    figure.draw_without_rendering()
    return axes, [text.get_text() for text in axes.texts]


def test_points_that_lie_on_one_another_have_one_label() -> None:
    _, said = labelled([Point("5%", 100, 30, 28, 33), Point("10%", 100, 30, 28, 33)])

    assert said == ["5%, 10%"]


@pytest.mark.parametrize("seed", range(20))
def test_no_label_covers_another_or_leaves_the_axes(seed: int) -> None:
    drawn = random.Random(seed)
    x, y = drawn.uniform(0, 100), drawn.uniform(10, 90)
    near = [(x + drawn.uniform(-3, 3), y + drawn.uniform(-3, 3)) for _ in range(3)]
    points = [
        Point(name, min(100.0, max(0.0, x)), y, y - 2, y + 2)
        for name, (x, y) in zip(("1%", "5%", "10%"), near, strict=True)
    ]

    axes, said = labelled(points)

    assert sorted(said) == sorted(point.name for point in points)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(axes.bbox.contains(box.x0, box.y0) for box in boxes)
    assert all(axes.bbox.contains(box.x1, box.y1) for box in boxes)
