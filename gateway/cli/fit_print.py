"""How `tiergate fit` shows on a terminal what it found."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from gateway.cli.screen import screen
from gateway.cli.whole import print_whole
from gateway.fitting.told import promise_sentence, remarks
from gateway.fitting.training import Fitted, Terms, TooFew


def show(found: Sequence[Fitted | TooFew], terms: Terms, folder: Path) -> None:
    """A table, what is promised, what to know, and how to serve the heads."""
    console = screen()
    table = Table("question", "examples", "right (95 %)", "constant", "ECE", "kept back", "right")
    for one in found:
        table.add_row(*_cells(one))
    print_whole(table)
    heads = [one for one in found if isinstance(one, Fitted)]
    for one in found:
        said = [f"no head: {one.why}"] if isinstance(one, TooFew) else _sentences(one, terms)
        for sentence in said:
            console.print(f"{one.examples.name}: {sentence}", highlight=False)
    if heads:
        path = json.dumps(str(folder))
        print(f'\nserve them with:\n\n[engines.fitted]\nkind = "fitted"\npath = {path}')


def _cells(one: Fitted | TooFew) -> list[str]:
    if isinstance(one, TooFew):
        return [one.examples.name, str(len(one.examples.texts)), "no head", "", "", "", ""]
    crossed, kept = one.evidence.crossed, one.evidence.held_out
    return [
        one.examples.name,
        str(one.evidence.trained_on),
        f"{crossed.accuracy:.1%} ({crossed.interval.low:.1%} to {crossed.interval.high:.1%})",
        f"{crossed.majority:.1%}",
        f"{one.evidence.uncalibrated_ece:.3f} → {crossed.ece:.3f}",
        "none" if kept is None else str(kept.rows),
        "" if kept is None else f"{kept.accuracy:.1%}",
    ]


def _sentences(one: Fitted, terms: Terms) -> list[str]:
    curve = ", ".join(f"{share:.1%} with {rows}" for rows, share in one.evidence.curve)
    return [promise_sentence(one, terms), f"learning curve: {curve}", *remarks(one)]
