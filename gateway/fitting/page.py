"""The report of a fit as one HTML page that needs nothing else: no script, no font, no network."""

from collections.abc import Sequence
from html import escape

from gateway.calibrating.plot import Axis, Plot
from gateway.calibrating.report import STYLE
from gateway.fitting.told import promise_sentence, remarks
from gateway.fitting.training import Fitted, Terms, TooFew

_ENOUGH = 20
"""Answers in a tenth of the probabilities, for their share to mean something."""


def page(found: Sequence[Fitted | TooFew], terms: Terms) -> str:
    """The page, in the order of the questions."""
    parts = [_about(one, terms) for one in found]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Fitted heads</title><style>{STYLE}</style></head>\n"
        f"<body><h1>Fitted heads</h1>{''.join(parts)}</body></html>\n"
    )


def _about(one: Fitted | TooFew, terms: Terms) -> str:
    title = f"<h2>{escape(one.examples.name)}</h2>"
    if isinstance(one, TooFew):
        return f'{title}<p class="silent">No head: {escape(one.why)}.</p>'
    kept = one.evidence.certificate is not None and one.evidence.certificate.floor is not None
    mark = "kept" if kept else "silent"
    items = "".join(f"<li>{escape(said)}.</li>" for said in remarks(one))
    return "\n".join(
        [
            title,
            f'<p class="{mark}">{escape(promise_sentence(one, terms)).capitalize()}.</p>',
            _numbers(one),
            '<div class="charts">',
            _figure(_curve(one), "By how many examples it was fitted to; cross-validation."),
            _figure(
                _reliability(one),
                "By what it says; on the diagonal it is true; orange: too few to tell.",
            ),
            "</div>",
            f"<ul>{items}</ul>" if items else "",
            _confused(one),
        ]
    )


def _numbers(one: Fitted) -> str:
    measures = [("cross-validated", one.evidence.crossed)]
    if one.evidence.held_out is not None:
        measures.append(("kept back", one.evidence.held_out))
    rows = "".join(
        f"<tr><td>{name}</td><td>{m.rows}</td><td>{m.accuracy:.1%} ({m.interval.low:.1%} to "
        f"{m.interval.high:.1%})</td><td>{m.balanced:.1%}</td><td>{m.majority:.1%}</td>"
        f"<td>{m.ece:.3f}</td><td>{m.nll:.3f}</td></tr>"
        for name, m in measures
    )
    return (
        "<table><tr><th>examples</th><th>n</th><th>right (95 %)</th><th>mean over labels</th>"
        f"<th>constant answer</th><th>ECE</th><th>NLL</th></tr>{rows}</table>"
        f"<p>Fitted to {one.evidence.trained_on} examples; calibration took the ECE from "
        f"{one.evidence.uncalibrated_ece:.3f} to {one.evidence.crossed.ece:.3f}.</p>"
    )


def _confused(one: Fitted) -> str:
    if not one.evidence.confused:
        return ""
    rows = "".join(
        f"<tr><td>{escape(right)}</td><td>{escape(said)}</td><td>{times}</td></tr>"
        for right, said, times in one.evidence.confused
    )
    return f"<table><tr><th>right</th><th>said</th><th>times</th></tr>{rows}</table>"


def _curve(one: Fitted) -> str:
    points = one.evidence.curve
    low = min(share for _, share in points)
    plot = Plot(
        Axis("examples fitted to", 0.0, float(max(rows for rows, _ in points))),
        Axis("share that is right", max(0.0, low - 0.05), 1.0, percent=True),
        "Learning curve: share right of rows left out, by examples fitted to",
    )
    plot.line([(float(rows), share) for rows, share in points], "main")
    for rows, share in points:
        plot.dot(float(rows), share, f"{rows} examples: {share:.1%} right")
    return plot.svg()


def _reliability(one: Fitted) -> str:
    plot = Plot(
        Axis("stated probability of being right", 0.0, 1.0, percent=True),
        Axis("share that is right", 0.0, 1.0, percent=True),
        "Reliability: on the diagonal the stated probability is true",
    )
    points = one.evidence.crossed.reliability
    plot.line([(0.0, 0.0), (1.0, 1.0)], "guide")
    plot.line([(stated, right) for stated, right, rows in points if rows >= _ENOUGH], "main")
    for stated, right, rows in points:
        says = f"{rows} answers, stated {stated:.1%}, right {right:.1%}"
        plot.dot(stated, right, says, "main" if rows >= _ENOUGH else "other")
    return plot.svg()


def _figure(content: str, caption: str) -> str:
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>"
