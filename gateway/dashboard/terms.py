"""What the page needs to know of the configuration."""

from dataclasses import dataclass

from gateway.config import Settings
from gateway.config_prices import PricesSection
from gateway.ledger.calendar import Calendar


@dataclass(frozen=True, slots=True)
class PageTerms:
    """Settings that pages are made from."""

    prices: PricesSection
    calendar: Calendar
    """Whose days budgets are for."""
    session_s: float
    """How long a login lasts."""
    tiers: tuple[str, ...] = ()
    """Engines that have a better one above them in some model."""


def page_terms(settings: Settings) -> PageTerms | None:
    """The terms; `None` where the page is switched off."""
    dashboard = settings.dashboard
    if not dashboard.enabled:
        return None
    lower = [one for model in settings.models.values() for one in model.engines[:-1]]
    return PageTerms(
        settings.prices,
        Calendar(settings.ledger.timezone),
        dashboard.session_hours * 3600,
        tuple(dict.fromkeys(lower)),
    )
