"""What the page knows of the configuration for good; a reload may change all else it shows."""

from dataclasses import dataclass

from gateway.config import Settings


@dataclass(frozen=True, slots=True)
class PageTerms:
    """`[dashboard]`, for as long as the gateway runs."""

    session_s: float
    """How long a login lasts."""


def page_terms(settings: Settings) -> PageTerms | None:
    """The terms; `None` where the page is switched off."""
    dashboard = settings.dashboard
    return PageTerms(dashboard.session_hours * 3600) if dashboard.enabled else None
