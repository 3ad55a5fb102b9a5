"""The three charts of a group of answers."""

from gateway.calibrating.curves import reliability, risk_coverage, thinned
from gateway.calibrating.findings import GroupFound
from gateway.calibrating.plot import Axis, Plot
from gateway.calibrating.words import percent

_EVEN = [(0.0, 0.0), (1.0, 1.0)]


def reliability_chart(found: GroupFound) -> str:
    """Stated probability against the share that is right, before and after calibration, as SVG."""
    plot = Plot(
        Axis("stated probability of being right", 0.0, 1.0, percent=True),
        Axis("share that is right", 0.0, 1.0, percent=True),
        "Reliability: on the diagonal the stated probability is true",
    )
    after = reliability(found.group.likelihoods, found.right)
    for one in after:
        low = min(9, int(one.stated * 10)) / 10
        says = f"{one.count} answers, stated {percent(one.stated)}, right {percent(one.right)}"
        plot.bar(low, low + 0.1, one.right, says)
    plot.line(_EVEN, "guide")
    plot.line([(one.stated, one.right) for one in reliability(found.raw, found.right)], "other")
    plot.line([(one.stated, one.right) for one in after], "main")
    return plot.svg()


def risk_coverage_chart(found: GroupFound, risk: float) -> str:
    """How often kept answers are wrong, by how many are kept, as SVG."""
    points = risk_coverage(found.group.likelihoods, found.right)
    top = max(2 * risk, points[-1].risk if points else 0.0, 0.01) * 1.15
    plot = Plot(
        Axis("share of the answers that is kept", 0.0, 1.0, percent=True),
        Axis("share of the kept that is wrong", 0.0, min(1.0, top), percent=True),
        "Risk over coverage: how often kept answers are wrong, by how many are kept",
    )
    plot.line([(0.0, risk), (1.0, risk)], "guide")
    plot.note(0.0, risk, f"promised: {percent(risk)}")
    plot.line([(one.coverage, one.risk) for one in thinned(points)], "main")
    promise = found.group.promise
    if promise.floor is not None:
        seen = promise.errors / promise.accepted
        says = f"floor {promise.floor:.6g}: {percent(promise.coverage)} kept, {percent(seen)} wrong"
        plot.dot(promise.coverage, seen, says)
        plot.note(promise.coverage, seen, "floor")
    return plot.svg()


def cost_accuracy_chart(found: GroupFound, unit: str) -> str:
    """What each floor costs and is right at, against going up by chance, as SVG; empty if alone."""
    if not found.trades:
        return ""
    costs = [one.cost for one in found.trades]
    shares = [one.accuracy for one in found.trades]
    room = max(0.02, 0.15 * (max(shares) - min(shares)))
    plot = Plot(
        Axis(unit, 0.0, max(costs) * 1.08 or 1.0),
        Axis("accuracy", max(0.0, min(shares) - room), min(1.0, max(shares) + room), percent=True),
        "Cost and accuracy of every floor, from keeping nothing to keeping everything",
    )
    first, last = found.trades[0], found.trades[-1]
    plot.line([(first.cost, first.accuracy), (last.cost, last.accuracy)], "guide")
    plot.line([(one.cost, one.accuracy) for one in thinned(found.trades)], "main")
    for one, name in ((first, "keeps nothing"), (last, f"keeps {percent(last.kept)}")):
        plot.dot(one.cost, one.accuracy, f"{name}: {percent(one.accuracy)} right", "other")
        plot.note(one.cost, one.accuracy, name)
    chosen = found.chosen
    if chosen is not None and found.group.promise.promised:
        says = f"{percent(chosen.kept)} kept, {percent(chosen.accuracy)} right, {chosen.cost:.4g}"
        plot.dot(chosen.cost, chosen.accuracy, says)
        plot.note(chosen.cost, chosen.accuracy, "floor")
    return plot.svg()
