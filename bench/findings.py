"""What a run of `python -m bench edge` does and finds: samples, and the quantities goals are on."""

from dataclasses import asdict, dataclass, field

from bench.contenders import CONTROL, GATEWAY, REFERENCE
from bench.measure import Sample
from bench.verdict import Spread, ratios


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    sample_cpu_s: float
    """CPU seconds of the server in each sample."""
    clients: int
    probes: int
    """Requests to /health per stretch."""
    warm_requests: int
    memory_requests: int
    bodies: tuple[str, ...] = ("1q", "8q", "64q", "255options")


FULL = Plan(7, 2.0, 16, 400, 10_000, 100_000)
QUICK = Plan(1, 0.2, 16, 60, 500, 2_000)


@dataclass(frozen=True, slots=True)
class Cost:
    """One sample of one contender."""

    cpu_us: float
    """Server CPU per request."""
    per_second: float
    answered: int
    sample: Sample


@dataclass(slots=True)
class Findings:
    """Everything a run measured."""

    costs: dict[str, dict[str, list[Cost]]] = field(default_factory=dict)
    """Body → contender → one sample per round."""
    health_s: dict[str, list[float]] = field(default_factory=dict)
    """Situation → p99 of /health, one per round."""
    health_foreign: list[float] = field(default_factory=list)
    rss_bytes: list[int] = field(default_factory=list)
    """Resident memory: warm, then after every tenth of the requests."""

    def control(self, body: str) -> Spread:
        """A over A."""
        return self.cpu(body, REFERENCE, CONTROL)

    def cpu(self, body: str, ours: str, theirs: str) -> Spread:
        """CPU per request of one contender over another's, round by round."""
        costs = self.costs[body]
        return ratios([c.cpu_us for c in costs[ours]], [c.cpu_us for c in costs[theirs]])

    def foreign_share(self) -> float:
        """The largest share of the CPUs that others used, over all samples."""
        shares = [
            c.sample.foreign_share for by in self.costs.values() for cs in by.values() for c in cs
        ]
        return max([*shares, *self.health_foreign], default=0.0)

    def quantities(self) -> dict[str, tuple[Spread, Spread | None]]:
        """Name as in GOALS.toml → what was measured, and the A/A control where there is one."""
        found: dict[str, tuple[Spread, Spread | None]] = {}
        for body, by in self.costs.items():
            for peer in by:
                if peer not in (GATEWAY, CONTROL):
                    named = f"cpu {body} / {peer}"
                    found[named] = (self.cpu(body, GATEWAY, peer), self.control(body))
        if self.health_s:
            for situation, p99_s in self.health_s.items():
                ratio = ratios(p99_s, self.health_s["idle"])
                found[f"health p99, {situation} / idle"] = (ratio, None)
        if self.rss_bytes:
            growth = self.rss_bytes[-1] / self.rss_bytes[0]
            found["memory after 100,000 requests / warm"] = (Spread((growth,)), None)
        return found

    def as_json(self) -> dict[str, object]:
        """Everything, for a result file."""
        return asdict(self)
