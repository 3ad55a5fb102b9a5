"""`GET /metrics`: what was counted and what can be looked up, as Prometheus reads it.

Every scrape has a registry of its own, so nothing is global and nothing is counted twice.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway import __version__
from gateway.app import Services
from gateway.exposition_state import budgets, gpu_memory, states
from gateway.metrics import BOUNDS_S, Counts, Metrics
from gateway.passage import STAGES
from policies.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer

KINDS: Mapping[type[Answer] | None, str] = {
    NoulAnswer: "noul",
    ChoiceAnswer: "choice",
    ScoreAnswer: "score",
}
TOO_LONG = ("too_long", "options_cut", "instructions_cut")
"""Reasons of an engine for which another server might have left something out."""


async def exposition(services: Services, accept: str) -> tuple[str, bytes]:
    """Media type and text, by what the scraper accepts."""
    families = [*counted(services.metrics), *states(services)]
    families += await budgets(services, time.time())
    if services.has_gpu:
        families += await asyncio.to_thread(gpu_memory)
    return await asyncio.to_thread(_encoded, families, accept)


def counted(metrics: Metrics) -> Iterator[Metric]:
    """What was counted as it happened."""
    yield InfoMetricFamily("tiergate_build", "The version that runs", {"version": __version__})
    requests = list(metrics.requests.items())
    yield _counter(
        "tiergate_requests",
        "Requests that have ended; status 499 = the caller left",
        ("route", "status"),
        ((route, str(status), n) for (route, status), n in requests),
    )
    in_progress = metrics.begun - sum(n for _, n in requests)
    yield GaugeMetricFamily(
        "tiergate_requests_in_progress", "Requests that have begun and not ended", in_progress
    )
    yield _counter(
        "tiergate_questions",
        "Questions answered; an empty reason = the only engine vouches for its answer",
        ("engine", "kind", "reason"),
        (
            (engine, KINDS.get(kind, "other"), reason or "", n)
            for (engine, kind, reason), n in metrics.questions.items()
        ),
    )
    yield _counter(
        "tiergate_escalations",
        "Questions that went up to a better engine that answered them",
        ("model", "reason"),
        ((*labels, n) for labels, n in metrics.escalations.items()),
    )
    yield _counter(
        "tiergate_tokens",
        "Tokens read, also for requests that were not answered",
        ("engine",),
        ((engine, read.tokens) for engine, read in metrics.read.items()),
    )
    yield _counter(
        "tiergate_engine_seconds",
        "Seconds of reading, without waiting",
        ("engine",),
        ((engine, read.seconds) for engine, read in metrics.read.items()),
    )
    yield _counter(
        "tiergate_refusals",
        "Requests refused, by what for",
        ("kind",),
        metrics.refusals.items(),
    )
    yield _counter(
        "tiergate_truncations_refused",
        "Requests refused because an engine would have had to leave something out",
        ("reason",),
        [(reason, n) for reason, n in metrics.unreadable.items() if reason in TOO_LONG],
    )
    yield _single(
        "tiergate_truncated_questions",
        "Questions of which an engine left something out, where it may",
        "engine",
        metrics.truncated,
    )
    yield _single(
        "tiergate_config_reloads", "Reloads of the configuration", "outcome", metrics.reloads
    )
    yield CounterMetricFamily(
        "tiergate_replays", "Answers that were made for an earlier request", metrics.replayed
    )
    yield _stages(metrics)


def _stages(metrics: Metrics) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "tiergate_request_stage_seconds",
        "Where the time of answered requests went; total is all of it",
        labels=("stage",),
    )
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    for stage, histogram in zip(STAGES, metrics.stages(), strict=True):
        cumulative = list(accumulate(histogram.counts))
        family.add_metric((stage,), list(zip(bounds, cumulative, strict=True)), histogram.sum_s)
    return family


def _single(name: str, about: str, label: str, counts: Counts[str]) -> CounterMetricFamily:
    return _counter(name, about, (label,), counts.items())


def _counter(
    name: str, about: str, labels: Sequence[str], rows: Iterable[Sequence[object]]
) -> CounterMetricFamily:
    """A family with one sample per row: the labels' values, then the count."""
    family = CounterMetricFamily(name, about, labels=labels)
    for *values, count in rows:
        family.add_metric([str(value) for value in values], float(str(count)))
    return family


class _Found(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _encoded(families: Sequence[Metric], accept: str) -> tuple[str, bytes]:
    registry = CollectorRegistry()
    registry.register(_Found(families))
    ProcessCollector(registry=registry)
    encoder, media_type = choose_encoder(accept)
    return media_type, encoder(registry)
