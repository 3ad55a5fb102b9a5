"""The gateway under everything at once, for as long as you like: `python -m bench soak`.

Laps of load and rest: visitors with good, bad, broken and endless requests, the official SDK, and
engines that fail. At rest, what the process holds must not have grown from lap to lap, and the
ledger must be what callers were told.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import soak_verdict
from bench.machine import load_average, machine
from bench.measure import Stretch, cores, pinned
from bench.procs import CannotServe
from bench.soak_clients import Notes, Visitor, drip, look
from bench.soak_gateway import Rest, Soaked, rest, running
from bench.soak_operator import metrics, reload, reloads, scrape
from bench.soak_sdk import SdkUser

_LAPS = 12
_FEWEST_LAPS = 4
_SHORTEST_LAP_S = 6.0
VISITORS, DRIPPING, SDK_USERS = 10, 40, 2
_SETTLED_WITHIN_S = 15.0


def main(arguments: Sequence[str]) -> int:
    """0; 1 when anything was wrong; 4 when the gateway did not come up."""
    chosen = _parser().parse_args(arguments)
    total_s = chosen.minutes * 60
    laps = max(_FEWEST_LAPS, min(_LAPS, int(total_s / _SHORTEST_LAP_S)))
    server_core, load_core = cores()
    before = load_average()
    notes = Notes()
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            pinned(load_core),
            running(Path(folder), server_core) as soaked,
        ):
            stretch = Stretch(soaked.server.pid)
            rests = _laps(soaked, laps, total_s / laps, notes)
            foreign_share = stretch.sample().foreign_share
            reloaded = reloads(asyncio.run(metrics(soaked)))
            found = soak_verdict.differences(soaked.ledger, notes.tokens)
    except CannotServe as error:
        print(f"bench: {error}", file=sys.stderr)
        return 4
    wrong = [*notes.wrong, *found, *soak_verdict.leaks(rests)]
    wrong += soak_verdict.waits(notes.health_s, notes.answered_s, foreign_share)
    wrong += [] if all(reloaded) else [f"of the reloads {reloaded} worked and failed"]
    _show(notes, rests, wrong)
    print(f"others used {foreign_share:.0%} of the CPUs")
    if chosen.json is not None:
        about = machine() | {
            "load average before": before,
            "load average after": load_average(),
            "share of the CPUs used by others": f"{foreign_share:.0%}",
        }
        chosen.json.write_text(json.dumps(_report(about, notes, rests, wrong), indent=2) + "\n")
    return 1 if wrong else 0


def _laps(soaked: Soaked, laps: int, lap_s: float, notes: Notes) -> list[Rest]:
    """What the gateway holds after each lap."""
    rests = []
    with _progress(laps) as advance, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for lap in range(laps):
            runner.run(_lap(soaked, lap, lap_s, notes))
            rests.append(runner.run(_settled(soaked)))
            advance()
    return rests


async def _lap(soaked: Soaked, lap: int, lap_s: float, notes: Notes) -> None:
    """Load, and its end."""
    port, key, stopping = soaked.server.port, soaked.key, asyncio.Event()
    users = [SdkUser(lap * SDK_USERS + i, port, key) for i in range(SDK_USERS)]
    for user in users:
        user.start()
    visitors = [Visitor(lap * VISITORS + i, port, key, notes) for i in range(VISITORS)]
    async with asyncio.TaskGroup() as group:
        for visitor in visitors:
            group.create_task(visitor.visit(stopping))
        for _ in range(DRIPPING):
            group.create_task(drip(port, key, notes, stopping))
        group.create_task(look(port, notes, stopping))
        group.create_task(reload(soaked, stopping))
        group.create_task(scrape(soaked, notes, stopping))
        await asyncio.sleep(lap_s)
        stopping.set()
        for user in users:
            user.stopping.set()
    await asyncio.to_thread(_joined, users)
    for user in users:
        notes.add(user.notes)


def _joined(users: Sequence[threading.Thread]) -> None:
    for user in users:
        user.join()


async def _settled(soaked: Soaked) -> Rest:
    """What the gateway holds once its connections are closed and its ledger is written.

    Descriptors and threads that do not go away within a while are what it holds at rest.
    """
    until_s = time.monotonic() + _SETTLED_WITHIN_S
    before = rest(soaked.server.pid)
    while time.monotonic() < until_s:
        await asyncio.sleep(0.5)
        now = rest(soaked.server.pid)
        if now == before:
            break
        before = now
    return before


@contextmanager
def _progress(laps: int) -> Iterator[Callable[[], None]]:
    """A bar that moves on by one lap with every call."""
    columns = (TextColumn("soaking"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("soaking", total=laps)
        yield lambda: progress.advance(task)


def _report(
    about: Mapping[str, object], notes: Notes, rests: Sequence[Rest], wrong: Sequence[str]
) -> dict[str, object]:
    return {
        "about": about,
        "statuses": {f"{act}: {status}": n for (act, status), n in sorted(notes.statuses.items())},
        "answers": len(notes.tokens),
        "tokens": sum(notes.tokens.values()),
        "p99 of /health, s": soak_verdict.p99(notes.health_s),
        "p99 of an answer, s": soak_verdict.p99(notes.answered_s),
        "at rest after each lap": [asdict(one) for one in rests],
        "wrong": list(wrong),
    }


def _show(notes: Notes, rests: Sequence[Rest], wrong: Sequence[str]) -> None:
    console = Console()
    table = Table("act", "status", "times", title="What callers were told")
    for (act, status), times in sorted(notes.statuses.items()):
        table.add_row(act, str(status), str(times))
    console.print(table)
    table = Table("lap", "memory, MB", "descriptors", "threads", title="At rest after each lap")
    for lap, one in enumerate(rests, start=1):
        row = (str(lap), f"{one.rss_bytes / 1e6:.1f}", str(one.descriptors), str(one.threads))
        table.add_row(*row)
    console.print(table)
    console.print(
        f"{len(notes.tokens)} answers, {sum(notes.tokens.values())} tokens; p99 of /health "
        f"{soak_verdict.p99(notes.health_s) * 1000:.0f} ms, of an answer "
        f"{soak_verdict.p99(notes.answered_s) * 1000:.0f} ms"
    )
    for sentence in wrong:
        console.print(f"wrong: {sentence}", markup=False)
    if not wrong:
        console.print("nothing was wrong")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench soak",
        description="Everything at once; exits with 1 when anything was wrong.",
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of load; 10 unless told")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write everything here")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
