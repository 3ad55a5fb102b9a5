"""The report of a calibration: one HTML page that needs nothing but itself."""

from collections.abc import Iterable, Sequence
from html import escape

from gateway.calibrating.charts import (
    cost_accuracy_chart,
    reliability_chart,
    risk_coverage_chart,
)
from gateway.calibrating.curves import confusions
from gateway.calibrating.findings import Findings, GroupFound
from gateway.calibrating.words import about, limits, percent, sentence, terms

STYLE = """
:root { --ink: #1c2330; --soft: #667085; --grid: #e3e6ea; --main: #1d5fbf; --other: #c4621a;
  --bar: #d6e4f7; --paper: #fff; --good: #1a7f4b; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa4b2; --grid: #30363f;
  --main: #6aa8ff; --other: #f0a35e; --bar: #24364f; --paper: #14181e; --good: #5fce93;
  --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.2rem; }
table { border-collapse: collapse; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; border-bottom: 1px solid var(--grid); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .9em; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .title { fill: var(--ink); } svg .note { fill: var(--ink); }
svg .grid { stroke: var(--grid); } svg polyline { fill: none; stroke-width: 2; }
svg polyline.main { stroke: var(--main); } svg polyline.other { stroke: var(--other); }
svg polyline.guide { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 3; }
svg circle.main { fill: var(--main); } svg circle.other { fill: var(--other); }
svg .bar { fill: var(--bar); } .kept { color: var(--good); } .silent { color: var(--bad); }
code { font-size: .92em; overflow-wrap: anywhere; }
"""


def page(found: Findings) -> str:
    """The report as HTML."""
    wrong = "wrong" if found.mode == "labels" else "other than the last engine's"
    lead = (
        f"Asked for: of the answers that are kept, at most {percent(found.terms.risk)} are "
        f"{wrong}. {terms(found.policy)}"
    )
    body = [
        "<h1>Calibration</h1>",
        f"<p>{escape(lead)}</p>",
        f"<p>{_rows_in_words(found)}</p>",
        _engines(found),
        *(_group(one, found) for one in found.groups),
        "<h2>What this does not say</h2>",
        f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in limits(found.policy))}</ul>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Calibration</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _rows_in_words(found: Findings) -> str:
    rows = found.rows
    said = (
        f"{rows['calibrate']} rows to calibrate, {rows['certify']} others to certify; made "
        f"{found.policy.created}."
    )
    if rows["repeated"]:
        said += f" {rows['repeated']} repeated questions counted once."
    return escape(said)


def _engines(found: Findings) -> str:
    right = "right" if found.mode == "labels" else "agreement"
    rows = [
        (
            one.name,
            one.model,
            "–" if one.accuracy is None else percent(one.accuracy),
            f"{one.refused} of {one.questions}",
            f"{one.mean_tokens:.0f}",
            f"{one.mean_ms:.1f}",
            one.digest[:16],
        )
        for one in found.engines
    ]
    heads = ("engine", "model", right, "cannot read", "tokens", "ms", "digest")
    return _table("Engines, on the rows that certify", heads, rows, numbers=range(2, 6))


def _group(one: GroupFound, found: Findings) -> str:
    promise = one.group.promise
    state = "kept" if promise.promised else "silent"
    parts = [
        f"<h2>{escape(promise.engine)}: {escape(about(promise))}</h2>",
        f'<p class="{state}">{escape(sentence(promise, found.policy))}</p>',
    ]
    if one.group.off:
        away = ", ".join(f"{count} {reason}" for reason, count in one.group.off.items())
        parts.append(f"<p>Never kept, whatever the floor: {escape(away)}.</p>")
    if one.group.answers:
        parts += [_charts(one, found), _confusions(one)]
    return "".join(parts)


def _charts(one: GroupFound, found: Findings) -> str:
    errors = one.errors_of_calibration or (0.0, 0.0)
    figures = [
        (
            reliability_chart(one),
            f"Reliability. Bars and blue: calibrated (expected error {percent(errors[1])}); "
            f"orange: the engine's own ({percent(errors[0])}).",
        ),
        (
            risk_coverage_chart(one, found.terms.risk),
            f"Risk over coverage. The floor: {escape(one.group.promise.start_rule)}.",
        ),
    ]
    chart = cost_accuracy_chart(one, found.unit)
    if chart:
        figures.append((chart, _bargain(one, found)))
    return (
        '<div class="charts">'
        + "".join(f"<figure>{svg}<figcaption>{said}</figcaption></figure>" for svg, said in figures)
        + "</div>"
    )


def _bargain(one: GroupFound, found: Findings) -> str:
    said = "Cost and accuracy of every floor; dashed: the same share going up by chance."
    chosen = one.chosen
    if chosen is not None and one.group.promise.promised:
        all_up = one.trades[0]
        said += (
            f" The floor: {percent(chosen.kept)} kept, {percent(chosen.accuracy)} right at "
            f"{chosen.cost:.4g} {found.unit}; all up: {percent(all_up.accuracy)} at "
            f"{all_up.cost:.4g}."
        )
    return escape(said)


def _confusions(one: GroupFound) -> str:
    promise = one.group.promise
    floor = promise.floor
    kept = [
        answer
        for answer, likelihood in zip(one.group.answers, one.group.likelihoods, strict=True)
        if floor is None or likelihood >= floor
    ]
    rows = [(name, right, answer, str(count)) for name, right, answer, count in confusions(kept)]
    if not rows:
        return ""
    title = "Most frequent wrong answers" + (" that are kept" if promise.promised else "")
    return _table(title, ("question", "right", "answer", "how often"), rows, numbers=(3,))


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> str:
    right = set(numbers)

    def cells(tag: str, texts: Sequence[str]) -> str:
        kind = [' class="n"' if i in right else "" for i in range(len(texts))]
        return "".join(
            f"<{tag}{own}>{escape(text)}</{tag}>" for own, text in zip(kind, texts, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"
    )
