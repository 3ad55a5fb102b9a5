"""What the HTTP edge costs: `python -m bench edge`.

CPU per request of the gateway against peers that are alive in the same run, the latency of
`/health` while an engine is busy, and memory over many requests. docs/benchmarks.md has the rules.
"""

import asyncio
import functools
import operator
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import uvloop

from bench import load
from bench.bodies import bodies
from bench.contenders import (
    CONTROL,
    FASTAPI,
    GATEWAY,
    INSTANT,
    MOCK,
    REFERENCE,
    STARTER,
    WAITING,
    Contender,
    contenders,
    gateway,
    has_starter,
)
from bench.findings import Cost, Findings, Plan
from bench.measure import Stretch, cores, pinned, rss_bytes
from bench.verdict import quantile

PATH = "/v1/systemone"
_SETTLE_S = 0.1
_LONGEST_S = 60.0
_PROBE_EVERY_S = 0.012

ENTRIES = {
    "1q": (GATEWAY, REFERENCE, CONTROL, FASTAPI, MOCK),
    "8q": (GATEWAY, REFERENCE, CONTROL),
    "64q": (GATEWAY, REFERENCE, CONTROL, FASTAPI, MOCK),
    "255options": (GATEWAY, REFERENCE, CONTROL),
}
"""Body → who answers it."""


class Run:
    """One run: what to measure, how, and what was found so far."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        core: int,
        runner: asyncio.Runner,
        tell: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.findings = Findings()
        self._folder = folder
        self._core = core
        self._runner = runner
        self._tell = tell

    def costs(self) -> None:
        """Every contender on every body, in every round in another order."""
        with contenders(self._folder, self._core) as alive:
            asks = self._alone(alive)
            for i in range(self.plan.rounds):
                for body in self.plan.bodies:
                    names = ENTRIES[body]
                    turn = i % len(names)
                    for name in names[turn:] + names[:turn]:
                        self._tell(f"round {i + 1} of {self.plan.rounds}: {body}, {name}")
                        time.sleep(_SETTLE_S)
                        measured = self._cost(asks[body, name], alive[name], 1.0)
                        self.findings.costs[body][name].append(measured)

    def _alone(self, alive: dict[str, Contender]) -> dict[tuple[str, str], load.Ask]:
        """Body and contender → the request with the answer it gets alone; all warmed up."""
        sent = bodies()
        asks: dict[tuple[str, str], load.Ask] = {}
        for body in self.plan.bodies:
            names = ENTRIES[body]
            self.findings.costs[body] = {name: [] for name in names}
            for name in names:
                self._tell(f"{name} alone on {body}")
                asks[body, name] = self._runner.run(_expecting(alive[name], sent[body]))
                self._cost(asks[body, name], alive[name], 0.25)
        return asks

    def _cost(self, ask: load.Ask, contender: Contender, share: float) -> Cost:
        """A sample of `share` times the planned length."""
        stretch = Stretch(contender.server.pid)
        until_s = time.monotonic() + _LONGEST_S
        enough_s = self.plan.sample_cpu_s * share

        def done(_: int) -> bool:
            return stretch.spent_s() >= enough_s or time.monotonic() > until_s

        outcome = self._runner.run(load.load(ask, self.plan.clients, done))
        sample = stretch.sample()
        return Cost(
            sample.server_cpu_s / outcome.answered * 1e6,
            outcome.answered / outcome.wall_s,
            outcome.answered,
            sample,
        )

    def health(self) -> None:
        """p99 of /health: idle, and with 32 clients in front of engines of several manners."""
        situations = {"idle": (WAITING, 0), "32 clients": (WAITING, 32)}
        if has_starter():
            situations["32 clients, starter"] = (STARTER, 32)
        situations["saturated"] = (INSTANT, 32)
        with ExitStack() as stack:
            alive = {
                engine: stack.enter_context(gateway(self._folder, self._core, engine))
                for engine in dict.fromkeys(engine for engine, _ in situations.values())
            }
            for i in range(self.plan.rounds):
                for situation, (engine, clients) in situations.items():
                    self._tell(f"round {i + 1} of {self.plan.rounds}: /health, {situation}")
                    time.sleep(_SETTLE_S)
                    stretch = Stretch(alive[engine].server.pid)
                    p99 = _health_p99_s(alive[engine], clients, self.plan.probes)
                    p99_s = self._runner.run(p99)
                    self.findings.health_s.setdefault(situation, []).append(p99_s)
                    self.findings.health_foreign.append(stretch.sample().foreign_share)

    def memory(self) -> None:
        """Resident memory, warm and after each tenth of the requests."""
        with gateway(self._folder, self._core) as one:
            ask = self._runner.run(_expecting(one, bodies()["1q"]))
            tenth = self.plan.memory_requests // 10
            for requests in (self.plan.warm_requests, *(10 * [tenth])):
                done = functools.partial(operator.le, requests)
                self._tell(f"memory over {self.plan.memory_requests:,} requests")
                self._runner.run(load.load(ask, self.plan.clients, done))
                self.findings.rss_bytes.append(rss_bytes(one.server.pid))


def run(plan: Plan, parts: frozenset[str], tell: Callable[[str], None]) -> Findings:
    """Measure `parts` of cpu, health and memory; `tell` hears what comes next.

    Raises:
        WrongAnswer: a server answered something else under load than alone.
        CannotServe: a server did not come up.
    """
    server_core, load_core = cores()
    with (
        tempfile.TemporaryDirectory() as folder,
        pinned(load_core),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        one = Run(plan, Path(folder), server_core, runner, tell)
        if "cpu" in parts:
            one.costs()
        if "health" in parts:
            one.health()
        if "memory" in parts:
            one.memory()
    return one.findings


async def _expecting(contender: Contender, body: bytes) -> load.Ask:
    """The request of a body with the answer that it gets alone."""
    request = load.request(PATH, body, key=contender.key)
    ask = load.Ask(contender.server.port, request)
    return load.Ask(ask.port, ask.request, await load.answer(ask))


async def _health_p99_s(one: Contender, clients: int, probes: int) -> float:
    health = load.Ask(one.server.port, load.request("/health"), b'{"status":"ok"}')
    if not clients:
        return quantile(await load.probe(health, probes, every_s=_PROBE_EVERY_S), 0.99)
    ask = await _expecting(one, bodies()["1q"])
    enough = asyncio.Event()
    busy = asyncio.create_task(load.load(ask, clients, lambda _: enough.is_set()))
    await asyncio.sleep(0.2)
    took_s = await load.probe(health, probes, every_s=_PROBE_EVERY_S)
    enough.set()
    await busy
    return quantile(took_s, 0.99)
