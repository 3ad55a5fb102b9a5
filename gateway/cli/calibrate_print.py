"""What a calibration found, for a person at a terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from gateway.calibrating.findings import Findings
from gateway.calibrating.words import about, limits, percent, refusal, terms
from gateway.cli.screen import screen
from gateway.config_file import toml
from gateway.policy_file import PolicyFile, Promise

_SETTINGS = (("policy", "policy.toml"), ("calibration", "calibration.json"))


def show(found: Findings, files: Mapping[str, str]) -> None:
    """Print engines, floors, what the floors mean, and where the files are."""
    console = screen()
    console.print(_engines(found))
    console.print(floors_table(found.policy))
    for one in found.groups:
        chosen = one.chosen
        if chosen is not None and one.group.promise.promised:
            console.print(
                f"{about(one.group.promise)}: {percent(chosen.kept)} kept, "
                f"{percent(chosen.accuracy)} right at {chosen.cost:.4g} {found.unit}; all up: "
                f"{percent(one.trades[0].accuracy)} at {one.trades[0].cost:.4g}",
                highlight=False,
            )
    tell_meaning(console, found.policy)
    console.print("written: " + ", ".join(files.values()), highlight=False, soft_wrap=True)
    if found.promised:
        lines = [f"{key} = {toml(files[name])}" for key, name in _SETTINGS]
        text = "\n".join(["", "to use it, in config.toml:", "[cascade]", *lines])
        console.print(text, highlight=False, soft_wrap=True)


def floors_table(policy: PolicyFile) -> Table:
    """One line for each floor."""
    kept = "wrong" if policy.mode == "labels" else "differ"
    table = Table(title=f"at most {percent(policy.risk)} of the kept answers {kept}")
    for heading in ("engine", "for", "floor", "kept", kept, "labels", "p"):
        table.add_column(heading, justify="left" if heading in {"engine", "for"} else "right")
    for promise in policy.floors:
        table.add_row(promise.engine, about(promise), *_cells(promise))
    return table


def tell_meaning(console: Console, policy: PolicyFile) -> None:
    """Print why floors are missing, how the confidence is meant, and what is not said."""
    for promise in policy.floors:
        if not promise.promised:
            text = f"{promise.engine}, {about(promise)}: {refusal(promise, policy)}"
            console.print(text, highlight=False)
    if any(promise.promised for promise in policy.floors):
        console.print(terms(policy), highlight=False)
        console.print(limits(policy)[-1 if policy.mode == "agreement" else 0], highlight=False)


def _cells(promise: Promise) -> tuple[str, ...]:
    if promise.floor is None or promise.p_value is None:
        return ("none", "–", "–", str(promise.labels), "–")
    return (
        f"{promise.floor:.4f}",
        percent(round(promise.coverage, 3)),
        f"{promise.errors} of {promise.accepted}",
        str(promise.labels),
        f"{promise.p_value:.3g}",
    )


def _engines(found: Findings) -> Table:
    rows = found.rows
    table = Table(title=f"{rows['calibrate']} rows to calibrate, {rows['certify']} to certify")
    right = "right" if found.mode == "labels" else "agrees"
    for heading in ("engine", "model", right, "cannot read", "tokens", "ms"):
        table.add_column(heading, justify="left" if heading in {"engine", "model"} else "right")
    for one in found.engines:
        accuracy = "–" if one.accuracy is None else percent(round(one.accuracy, 3))
        read = f"{one.refused} of {one.questions}"
        tokens, ms = f"{one.mean_tokens:.0f}", f"{one.mean_ms:.1f}"
        table.add_row(one.name, one.model, accuracy, read, tokens, ms)
    if repeated := rows["repeated"]:
        table.caption = f"{repeated} repeated questions counted once"
    return table
