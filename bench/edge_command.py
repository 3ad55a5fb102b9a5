"""The command line of `python -m bench edge`."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import edge, findings, report
from bench.load import WrongAnswer
from bench.machine import load_average, machine
from bench.peers import reference_a
from bench.procs import CannotServe
from bench.verdict import goals

_PARTS = ("cpu", "health", "memory")


def main(arguments: Sequence[str]) -> int:
    """0; 1 when `--check` finds a goal missed; 4 when nothing could be measured."""
    chosen = _parser().parse_args(arguments)
    plan = findings.QUICK if chosen.quick else findings.FULL
    if chosen.rounds is not None:
        plan = dataclasses.replace(plan, rounds=chosen.rounds)
    plan = dataclasses.replace(plan, bodies=tuple(chosen.bodies))
    about = machine() | {
        "gateway": "scripted engine (script = even), a key, default limits, access log off",
        "reference A": f"version {reference_a.VERSION}",
        "load average before": load_average(),
    }
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("starting")
            found = edge.run(
                plan,
                frozenset(chosen.parts),
                lambda what: progress.update(task, description=what),
            )
    except (WrongAnswer, CannotServe) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 4
    about |= {
        "load average after": load_average(),
        "largest share of the CPUs used by others": f"{found.foreign_share():.0%}",
    }
    if chosen.note:
        about["note"] = chosen.note
    outcomes = report.outcomes(found, goals("edge"))
    report.show(found, outcomes, Console())
    if chosen.json is not None:
        report.write(chosen.json, found, outcomes, plan, about)
    return 1 if chosen.check and any(one.verdict == "missed" for one in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    plan_bodies = findings.FULL.bodies
    parser = argparse.ArgumentParser(
        prog="python -m bench edge", description="What the HTTP edge costs, against its peers."
    )
    parser.add_argument("--rounds", type=int, help="instead of 7 (1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a smoke run: too short to gate on")
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write every sample here, and tables beside it"
    )
    parser.add_argument("--note", help="what else a reader of the result should know")
    parser.add_argument("--bodies", nargs="+", choices=plan_bodies, default=plan_bodies)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    return parser
