"""The results of the cascade bench as Markdown."""

from collections.abc import Iterable, Mapping
from typing import Any

_NO_PAIRS = ("on", "machine", "load_average")


def markdown(found: Mapping[str, Any]) -> str:
    """The whole report."""
    parts = [
        "# Cascades of real engines",
        "",
        f"Written by `python -m bench cascade` on {found['on']}. {_machine(found)}",
        "",
        "`AUROC` is how often a right answer of the small engine is held likelier than a wrong "
        "one (0.5: its confidence says nothing). `saved` is the largest share of questions that "
        "the large engine need not read at an accuracy equal to its own, and within a point of it, "
        "with 95 % bootstrap intervals; `recovered` is the share of the gap between the engines "
        "that is closed, over all shares of escalation (random: 0.5).",
    ]
    for title, sets in found.items():
        if title in _NO_PAIRS or not sets:
            continue
        parts += ["", f"## {title}", ""]
        pairs = {name: one for name, one in sets.items() if "large" in one}
        if pairs:
            parts += [*_overview(pairs), "", *_policies(pairs), ""]
        parts += [*_promises(sets), "", *_violations(sets)]
    return "\n".join(parts) + "\n"


def card_with(card: str, found: Mapping[str, Any]) -> str:
    """The card of the fitted engine with the table between its marks replaced."""
    before, rest = card.split("<!-- numbers -->\n", 1)
    _, after = rest.split("<!-- /numbers -->", 1)
    table = "\n".join(_heads(found))
    return f"{before}<!-- numbers -->\n{table}\n<!-- /numbers -->{after}"


def _heads(found: Mapping[str, Any]) -> Iterable[str]:
    yield from _head("set (kind)", "labels", "head right (95 %)", "ECE", "starter right", "test n")
    ways = (("starter → fitted", "large"), ("fitted to few labels → starter", "small"))
    for title, role in ways:
        for name, one in found.get(title, {}).items():
            head, starter = one[role], one["small" if role == "large" else "large"]
            yield _row(
                f"{name} ({one['kind']})", one["train_rows"],
                _share(head["accuracy"], head["interval"]), f"{head['ece']:.3f}",
                f"{starter['accuracy']:.1%}", one["rows"],
            )  # fmt: skip


def _overview(pairs: Mapping[str, Any]) -> Iterable[str]:
    yield from _head(
        "set", "n", "small", "large", "AUROC", "saved, equal", "saved, −1 point", "recovered",
        "30 % up, above random",
    )  # fmt: skip
    for name, one in pairs.items():
        saved, above = one["saved"], one["above_random"]["0.3"]
        yield _row(
            name,
            one["rows"],
            _share(one["small"]["accuracy"], one["small"]["interval"]),
            _share(one["large"]["accuracy"], one["large"]["interval"]),
            f"{one['small']['informative']:.3f}",
            _share(saved["equal"]["share"], saved["equal"]["interval"]),
            _share(saved["within_1"]["share"], saved["within_1"]["interval"]),
            f"{one['recovered']:.2f}",
            f"{100 * above['points']:+.1f} points "
            f"({100 * above['interval'][0]:+.1f} to {100 * above['interval'][1]:+.1f})",
        )


def _policies(pairs: Mapping[str, Any]) -> Iterable[str]:
    yield from _head(
        "set", "policy", "up", "right (95 %)", "random", "oracle", "wrong of kept", "fixed/broken",
        "p", "tokens", "CPU ms", "p50/p99 ms",
    )  # fmt: skip
    for name, one in pairs.items():
        for edge, escalated in (("small", 0.0), ("large", 1.0)):
            alone = one[edge]
            yield _row(
                name, f"all {edge}", f"{escalated:.0%}",
                _share(alone["accuracy"], alone["interval"]), "", "", "", "", "",
                f"{alone['tokens']:.0f}", f"{alone['cpu_ms']:.1f}",
                f"{alone['p50_ms']:.0f}/{alone['p99_ms']:.0f}",
            )  # fmt: skip
        for policy in one["policies"]:
            kept = policy["kept_error"]
            yield _row(
                name, policy["policy"], f"{policy['escalated']:.1%}",
                _share(policy["accuracy"], policy["interval"]),
                f"{policy['random']:.1%}", f"{policy['oracle']:.1%}",
                "" if kept is None else f"{kept:.1%}",
                f"{policy['fixed']}/{policy['broken']}", f"{policy['mcnemar']:.2g}",
                f"{policy['tokens']:.0f}", f"{policy['cpu_ms']:.1f}",
                f"{policy['p50_ms']:.0f}/{policy['p99_ms']:.0f}",
            )  # fmt: skip


def _promises(sets: Mapping[str, Any]) -> Iterable[str]:
    yield "Kept by the small engine alone at a risk: the most that these rows allow, known only"
    yield "afterwards, and what was promised on train rows (delta 0.1) and came of it here."
    yield ""
    yield from _head(
        "set", "right", "AUROC", "risk", "possible", "promised on", "kept", "wrong of kept"
    )
    for name, one in sets.items():
        small = one["small"]
        for risk, possible in small["automation"].items():
            promise = small["promised"].get(risk)
            cells = ("", "no promise", "") if promise is None else _kept(promise)
            yield _row(
                name, f"{small['accuracy']:.1%}", f"{small['informative']:.3f}",
                f"{float(risk):.0%}", f"{possible:.1%}", *cells,
            )  # fmt: skip


def _kept(promise: Mapping[str, Any]) -> tuple[str, str, str]:
    if promise["floor"] is None:
        needs = promise["needs"]
        why = "not possible" if needs is None else f"needs {needs} labels"
        return str(promise["labels"]), f"nothing: {why}", ""
    error = promise["error"]
    return (
        str(promise["labels"]),
        f"{promise['coverage']:.1%}",
        "" if error is None else f"{error:.1%}",
    )


def _violations(sets: Mapping[str, Any]) -> Iterable[str]:
    yield "Broken promises in 500 drawings of labels from the test rows (delta 0.1: at most 10 %),"
    yield "beside the lowest floor at which few enough of the drawn labels are wrong."
    yield ""
    yield from _head(
        "set", "risk", "labels", "promised", "mean kept", "broken", "naive: kept", "naive: broken"
    )
    for name, one in sets.items():
        for risk, drawings in one["small"]["violations"].items():
            for each in drawings:
                yield _row(
                    name, f"{float(risk):.0%}", each["labels"], f"{each['promised']:.1%}",
                    f"{each['coverage']:.1%}", f"{each['violated']:.1%}",
                    f"{each['naive_coverage']:.1%}", f"{each['naive_violated']:.1%}",
                )  # fmt: skip


def _head(*names: str) -> tuple[str, str]:
    return _row(*names), "|" + "---|" * len(names)


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _share(share: float, interval: Iterable[float]) -> str:
    low, high = interval
    return f"{share:.1%} ({low:.1%} to {high:.1%})"


def _machine(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    return (
        f"{machine['cpu']}, cores {machine['cores']}, load average {found['load_average']}; each "
        "engine on one thread, one question at a time, engines taking turns."
    )
