"""The composition root: settings to services and lanes; opens in order, closes in reverse.

No other file sees a concrete engine.
"""

from collections.abc import Mapping
from functools import partial

from engines.contract import Facts
from engines.fleet import Fleet, health_of
from engines.lane import Lane
from gateway.app import Services
from gateway.cards import Card
from gateway.config import Settings
from gateway.config_clef import ClefEngineSection
from gateway.config_engines import EngineSection, LayaEngineSection
from gateway.memo import Memo
from gateway.plan import Reader
from gateway.wiring_ledger import key_ring
from gateway.wiring_limits import ask_limits, body_limits
from gateway.wiring_plans import new_plans, promises


def new_services(settings: Settings) -> Services:
    """Services without engines: everything but asking works, and asking is refused with 503."""
    services = Services(
        ring=key_ring(settings),
        body=body_limits(settings),
        ask=ask_limits(settings),
        deadline_s=settings.server.deadline_s,
        default_model=settings.default_model,
    )
    services.proxies.trust(settings.server.trusted_proxies)
    return services


def only_model(settings: Settings, model: str | None) -> Settings:
    """The same settings with no engines but those of `model` (or of the default model)."""
    wanted = settings.default_model if model is None else model
    for name, section in settings.models.items():
        if wanted == name or wanted in section.aliases:
            engines = {engine: settings.engines[engine] for engine in section.engines}
            models = {n: m for n, m in settings.models.items() if engines.keys() >= set(m.engines)}
            return settings.model_copy(update={"engines": engines, "models": models})
    return settings


def install(services: Services, settings: Settings, lanes: Mapping[str, Lane | Fleet]) -> None:
    """Make the lanes' models available to requests, or available as other settings have it.

    Raises:
        ConfigError: see `promises` and `new_plans`; everything is as it was.
    """
    memos: dict[str, Reader] = dict(services.memos)  # what they remember outlives a reload
    readers = {
        name: memos.get(name) or _reader(lane, settings, name) for name, lane in lanes.items()
    }
    facts = {name: lane.engine.facts for name, lane in lanes.items()}
    promised = promises(settings.cascade, facts)
    services.plans = new_plans(settings, readers, facts, promised)
    services.promises = promised
    services.queues = lanes
    services.memos = {name: one for name, one in readers.items() if isinstance(one, Memo)}
    services.has_gpu = any(_on_gpu(section) for section in settings.engines.values())
    services.cards = cards(settings, facts)
    services.prices = settings.prices
    services.engines = {name: _state(one) for name, one in facts.items()}
    services.healths = {name: partial(health_of, lane) for name, lane in lanes.items()}
    services.ready = True


def _on_gpu(section: EngineSection) -> bool:
    match section:
        case ClefEngineSection():
            return any(device.startswith("cuda") for device in section.devices)
        case LayaEngineSection():
            return section.device == "cuda"
        case _:
            return False


def _reader(lane: Lane | Fleet, settings: Settings, engine: str) -> Reader:
    """The lane, behind a memo where the engine's section wants one and questions are read alone."""
    section = settings.engines[engine]
    if not isinstance(section, LayaEngineSection | ClefEngineSection):
        return lane
    facts = lane.engine.facts
    if not section.memo_bytes or facts.joint:
        return lane
    hits_cost = settings.pricing.cached == "full"
    return Memo(lane, facts.digest, section.memo_bytes, hits_cost=hits_cost)


def cards(settings: Settings, facts: dict[str, Facts]) -> tuple[Card, ...]:
    """Every model and alias that clients may name, models before their aliases."""
    listed = []
    for name, section in settings.models.items():
        engine = facts[section.engines[-1]]
        description = section.description or engine.notes or engine.model
        if len(section.engines) > 1 and not section.description:
            description = f"A cascade: {', then '.join(section.engines)}."
        elif engine.not_competent:
            weak = " and ".join(sorted(engine.not_competent))
            description += f" Not competent for {weak}: such answers carry x_reason."
        listed.append(Card(name, description, section.release_date))
        listed += [
            Card(alias, f"Alias of {name}.", section.release_date) for alias in section.aliases
        ]
    return tuple(listed)


def _state(facts: Facts) -> dict[str, object]:
    return {
        "model": facts.model,
        "digest": facts.digest,
        "max_tokens": facts.max_tokens,
        "not_competent": sorted(facts.not_competent),
    }
