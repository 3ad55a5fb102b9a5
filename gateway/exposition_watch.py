"""What `/metrics` says about the watch over cascades: alarms, and second opinions."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gateway.vigil import Vigil


def vigilance(vigil: Vigil) -> Iterator[Metric]:
    """How the watch stands now. Engines are those of the configuration and of the ledger."""
    alarms = GaugeMetricFamily(
        "tiergate_alarms", "Alarms that hold until they are cleared", labels=("kind", "engine")
    )
    for (kind, engine), count in Counter((one.kind, one.engine) for one in vigil.alarms).items():
        alarms.add_metric((kind, engine), count)
    figures = vigil.figures
    opinions = CounterMetricFamily(
        "tiergate_second_opinions",
        "Answers drawn for another engine to read; dropped = no room in the queue or the budget",
        labels=("outcome",),
    )
    for outcome in ("read", "dropped", "failed"):
        opinions.add_metric((outcome,), getattr(figures, outcome))
    compared = CounterMetricFamily(
        "tiergate_kept_answers_compared",
        "Kept answers that the last engine read afterwards, and whether it says the same",
        labels=("engine", "outcome"),
    )
    for outcome, counts in (("agreed", figures.agreed), ("disagreed", figures.disagreed)):
        for engine, count in counts.items():
            compared.add_metric((engine, outcome), count)
    yield from (alarms, opinions, compared)
