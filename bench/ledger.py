"""What keys, limits, budgets and the ledger cost, and what a crash loses: `python -m bench ledger`.

CPU per request with all of them on over the same gateway with all of them off, in one run, round
by round; then `kill -9` under 16 clients, every acknowledged answer against the ledger's rows.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from bench import load, procs
from bench.bodies import bodies
from bench.ledger_kill import CLIENTS, WINDOW_S, Killed, kill
from bench.ledger_servers import Gateway, bare, metered
from bench.machine import load_average, machine
from bench.measure import Stretch, cores, pinned
from bench.verdict import MAX_CONTROL_OFFSET, Spread, ratios

OFF, CONTROL, GROUP, ASYNC = "all off", "all off again", "group", "async"
GOALS = {GROUP: 1.35, ASYNC: 1.2}
"""Most CPU per request, as a multiple of `all off`."""

_SETTLE_S = 0.1
_LONGEST_S = 60.0
_WINDOW_SLACK_S = 0.05
"""The clock of the window is another process's, and its threads have to be scheduled."""


def main(arguments: Sequence[str]) -> int:
    """0; 1 when `--check` finds a goal missed."""
    chosen = _parser().parse_args(arguments)
    rounds = chosen.rounds if chosen.rounds is not None else 1 if chosen.quick else 7
    cpu_s = 0.5 if chosen.quick else 2.0
    before = load_average()
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory() as temporary, pinned(load_core):
        folder = Path(temporary)
        costs = _costs(folder, server_core, rounds, cpu_s) if rounds else {}
        killed = {
            GROUP: kill(folder, "group", chosen.kill, server_core),
            ASYNC: kill(folder, "async", chosen.kill, server_core),
        }
    measured = {name: ratios(costs[name], costs[OFF]) for name in costs}
    missed = [*_too_costly(measured), *_lost(killed)]
    _show(costs, measured, killed, missed)
    if chosen.json is not None:
        about = machine() | {"load average before": before, "load average after": load_average()}
        found = {
            "about": about,
            "cpu_us": costs,
            "ratios": {name: one.median for name, one in measured.items()},
            "killed": {name: [asdict(one) for one in runs] for name, runs in killed.items()},
            "missed": missed,
        }
        chosen.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if chosen.check and missed else 0


def _costs(folder: Path, core: int, rounds: int, cpu_s: float) -> dict[str, list[float]]:
    """Gateway → CPU microseconds per request, round by round; all of them alive together."""
    gateways = [
        bare(folder, OFF),
        bare(folder, CONTROL),
        metered(folder, GROUP, "group"),
        metered(folder, ASYNC, "async"),
    ]
    costs: dict[str, list[float]] = {one.name: [] for one in gateways}
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        servers = [stack.enter_context(one.running(core)) for one in gateways]
        alive = list(zip(gateways, servers, strict=True))
        asks = {one.name: runner.run(_expecting(one, server)) for one, server in alive}
        for number in range(rounds + 1):  # the first warms up
            turn = number % len(alive)
            for one, server in alive[turn:] + alive[:turn]:
                time.sleep(_SETTLE_S)
                enough_s = cpu_s if number else cpu_s / 4
                cost = _cost(runner, asks[one.name], server, enough_s)
                if number:
                    costs[one.name].append(cost)
    return costs


async def _expecting(gateway: Gateway, server: procs.Server) -> load.Ask:
    """The request with the answer that it gets alone."""
    request = load.request("/v1/systemone", bodies()["1q"], key=gateway.key)
    ask = load.Ask(server.port, request)
    return load.Ask(ask.port, ask.request, await load.answer(ask))


def _cost(runner: asyncio.Runner, ask: load.Ask, server: procs.Server, enough_s: float) -> float:
    """CPU microseconds per request, over `enough_s` of the server's CPU time."""
    stretch, until_s = Stretch(server.pid), time.monotonic() + _LONGEST_S

    def done(_: int) -> bool:
        return stretch.spent_s() >= enough_s or time.monotonic() > until_s

    outcome = runner.run(load.load(ask, CLIENTS, done))
    return stretch.sample().server_cpu_s / outcome.answered * 1e6


def _too_costly(measured: dict[str, Spread]) -> list[str]:
    """A sentence for each goal that is missed; nothing when the control says that none can be."""
    if not measured or abs(measured[CONTROL].median - 1.0) > MAX_CONTROL_OFFSET:
        return []
    return [
        f"{name}: {measured[name].median:.2f} times the CPU of '{OFF}', at most {most}"
        for name, most in GOALS.items()
        if measured[name].median > most
    ]


def _lost(killed: dict[str, list[Killed]]) -> list[str]:
    """A sentence for each run that lost more than was promised."""
    sentences = []
    for name, runs in killed.items():
        allowed_s = 0.0 if name == GROUP else WINDOW_S + _WINDOW_SLACK_S
        for number, one in enumerate(runs):
            if one.oldest_lost_s > allowed_s or (name == GROUP and one.lost):
                late = f"{one.oldest_lost_s * 1000:.0f} ms before the end"
                sentences.append(f"{name}, kill {number}: {one.lost} lost, the first {late}")
            if not one.balance_is_sum:
                sentences.append(f"{name}, kill {number}: the balance is not the sum of charges")
    return sentences


def _show(
    costs: dict[str, list[float]],
    measured: dict[str, Spread],
    killed: dict[str, list[Killed]],
    missed: list[str],
) -> None:
    console = Console()
    table = Table("gateway", "CPU µs a request", f"over '{OFF}'", "quartiles", "goal")
    for name, one in measured.items():
        low, high = one.quartiles
        goal = f"≤ {GOALS[name]}" if name in GOALS else ""
        cost = f"{sorted(costs[name])[len(costs[name]) // 2]:.0f}"
        table.add_row(name, cost, f"{one.median:.2f}", f"{low:.2f} to {high:.2f}", goal)
    console.print(table)
    if measured and abs(measured[CONTROL].median - 1.0) > MAX_CONTROL_OFFSET:
        console.print(f"inconclusive: '{CONTROL}' differs from '{OFF}' by more than 5 %")
    deaths = Table("kill -9", "times", "acknowledged", "lost", "first lost before the end")
    for name, runs in killed.items():
        if runs:
            oldest_ms = max(one.oldest_lost_s for one in runs) * 1000
            acknowledged, lost = sum(r.acknowledged for r in runs), sum(r.lost for r in runs)
            cells = (str(len(runs)), str(acknowledged), str(lost), f"{oldest_ms:.0f} ms")
            deaths.add_row(name, *cells)
    console.print(deaths)
    for sentence in missed:
        console.print(f"missed: {sentence}", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench ledger", description="What the ledger costs, and what a crash loses."
    )
    parser.add_argument("--rounds", type=int, help="instead of 7 (1 with --quick); 0 = no CPU part")
    parser.add_argument("--kill", type=int, default=20, help="kills for each durability")
    parser.add_argument("--quick", action="store_true", help="a smoke run: too short to gate on")
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write everything here")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
