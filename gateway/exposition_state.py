"""What `/metrics` looks up when it is asked: queues, memos, budgets, devices."""

import shutil
import subprocess
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from gateway.app import Services
from gateway.exposition_watch import vigilance
from gateway.ledger.books import Books
from gateway.ledger.calendar import Calendar
from gateway.ledger.store import Key, Store, StoreError
from policies.limits import UNITS, WINDOWS, Amounts
from policies.pricing import NANOS

_NVIDIA_SMI_S = 2.0
_MIB = 1_048_576


def states(services: Services) -> Iterator[Metric]:
    """How things stand now."""
    ready = float(services.ready)
    yield GaugeMetricFamily("tiergate_ready", "1 = the models are loaded", ready)
    in_force = float(services.reloaded.error is None)
    yield GaugeMetricFamily(
        "tiergate_config_in_force", "0 = the last reload failed, the old settings hold", in_force
    )
    info = GaugeMetricFamily(
        "tiergate_engine_info",
        "Always 1; what the engine is",
        labels=("engine", "model", "digest"),
    )
    for name, facts in services.engines.items():
        info.add_metric((name, str(facts["model"]), str(facts["digest"])), 1.0)
    yield info
    room = services.body.room
    yield GaugeMetricFamily(
        "tiergate_bodies_bytes", "Request bodies in memory", float(room.taken_bytes)
    )
    yield GaugeMetricFamily(
        "tiergate_bodies_limit_bytes", "What they may be before the next is 529", room.max_bytes
    )
    yield from _healths(services)
    yield from _queues(services)
    yield from _cascades(services)
    if services.vigil is not None:
        yield from vigilance(services.vigil)
    hits = CounterMetricFamily(
        "tiergate_memo_questions", "Questions looked up in a memo", labels=("engine", "outcome")
    )
    for name, memo in services.memos.items():
        hits.add_metric((name, "hit"), memo.hits)
        hits.add_metric((name, "miss"), memo.misses)
    yield hits
    if services.books is not None:
        failing = float(services.books.writer.failing)
        yield GaugeMetricFamily(
            "tiergate_ledger_failing", "1 = the last write to the ledger failed", failing
        )


def _healths(services: Services) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "tiergate_engine_up", "0 = the engine has lost its device", labels=("engine",)
    )
    events = CounterMetricFamily(
        "tiergate_engine_events", "What happened to the engine", labels=("engine", "event")
    )
    for name, look in services.healths.items():
        health = look()
        up.add_metric((name,), float(health.state != "lost"))
        for event, count in health.counts.items():
            events.add_metric((name, event), count)
    yield from (up, events)


def _cascades(services: Services) -> Iterator[Metric]:
    share = GaugeMetricFamily(
        "tiergate_escalation_share",
        "Share of the last questions that went up to a better engine",
        labels=("model",),
    )
    for plan in {plan.model: plan for plan in services.plans.values()}.values():
        if len(plan.tiers) > 1:
            share.add_metric((plan.model,), plan.share.value)
    yield share
    holds = GaugeMetricFamily(
        "tiergate_promise_holds",
        "1 = what was promised about the engine holds for the one that is loaded",
        labels=("engine",),
    )
    for name, promised in services.promises.items():
        holds.add_metric((name,), float(promised.suspended is None))
    yield holds
    demoted = GaugeMetricFamily(
        "tiergate_demoted",
        "Cells and fingerprints whose answers are not kept since an alarm",
        labels=("model", "engine"),
    )
    for plan in {plan.model: plan for plan in services.plans.values()}.values():
        for tier in plan.tiers[:-1]:
            demoted.add_metric((plan.model, tier.name), len(tier.demoted))
    yield demoted


def _queues(services: Services) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "tiergate_queue_requests", "Requests accepted and not yet begun", labels=("engine",)
    )
    room = GaugeMetricFamily(
        "tiergate_queue_limit", "Requests that may wait before the next is 529", labels=("engine",)
    )
    prepared = GaugeMetricFamily(
        "tiergate_prepared_pieces", "Pieces ready for a batch", labels=("engine",)
    )
    sizes = HistogramMetricFamily(
        "tiergate_batch_pieces", "Pieces read in one batch", labels=("engine",)
    )
    for name, queue in services.queues.items():
        waiting.add_metric((name,), queue.waiting)
        room.add_metric((name,), queue.max_waiting)
        if counts := queue.batch_sizes:
            prepared.add_metric((name,), queue.ready)
            bounds = [str(2**power) for power in range(len(counts) - 1)] + ["+Inf"]
            cumulative = list(accumulate(counts))
            sizes.add_metric((name,), list(zip(bounds, cumulative, strict=True)), None)
    yield from (waiting, room, prepared, sizes)


async def budgets(services: Services, now_s: float) -> list[Metric]:
    """What keys may use and what is left of it; what is in progress is not taken off.

    Nothing without a ledger, or while it cannot be read.
    """
    books, calendar = services.books, services.calendar
    keys = [key for key in services.ring.keys if key.limits.has_budgets and key.revoked_s is None]
    if books is None or calendar is None or not keys:
        return []
    try:
        spent = await _spent(books, calendar, keys, now_s)
    except StoreError:
        return []
    labels = ("key", "unit", "window")
    limit = GaugeMetricFamily("tiergate_budget_limit", "What a key may use", labels=labels)
    left = GaugeMetricFamily("tiergate_budget_remaining", "What is left of it", labels=labels)
    for key, amounts in zip(keys, spent, strict=True):
        for window, used in zip(WINDOWS, amounts, strict=True):
            for unit in UNITS:
                budget = key.limits.budget(unit, window)
                if budget is None:
                    continue
                name = (key.name, "usd" if unit == "nanos" else unit, window)
                scale = NANOS if unit == "nanos" else 1
                limit.add_metric(name, budget / scale)
                left.add_metric(name, max(0, budget - getattr(used, unit)) / scale)
    return [limit, left]


async def _spent(
    books: Books, calendar: Calendar, keys: list[Key], now_s: float
) -> list[tuple[Amounts, Amounts]]:
    """Of each key, what was settled in the day and in the month."""
    windows = calendar.windows(now_s)

    def read(store: Store) -> list[tuple[Amounts, Amounts]]:
        return [store.spent(key.key_id, windows) for key in keys]

    return await books.read(read)


def gpu_memory() -> list[Metric]:
    """Memory of every GPU as nvidia-smi tells it; nothing where it does not. Takes a while."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    fields = "--query-gpu=index,memory.used,memory.total"
    try:
        told = subprocess.run(  # noqa: S603 - a fixed command
            [program, fields, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    used = GaugeMetricFamily("tiergate_gpu_memory_used_bytes", "In use", labels=("gpu",))
    total = GaugeMetricFamily("tiergate_gpu_memory_bytes", "There is", labels=("gpu",))
    for line in told.splitlines():
        index, *mib = (part.strip() for part in line.split(","))
        if len(mib) == 2 and all(part.isdigit() for part in mib):
            used.add_metric((index,), int(mib[0]) * _MIB)
            total.add_metric((index,), int(mib[1]) * _MIB)
    return [used, total]
