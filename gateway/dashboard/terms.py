"""What the page knows of the configuration for good; a reload may change all else it shows."""

from dataclasses import dataclass

from gateway.config import Settings


@dataclass(frozen=True, slots=True)
class PageTerms:
    """Of `[dashboard]` and `[watch]`, for as long as the gateway runs."""

    session_s: float
    """How long a login lasts."""
    alarm_at: float
    """How strong evidence against a promise must be to raise an alarm: so many to one."""


def page_terms(settings: Settings) -> PageTerms | None:
    """The terms; `None` where the page is switched off."""
    dashboard = settings.dashboard
    if not dashboard.enabled:
        return None
    return PageTerms(dashboard.session_hours * 3600, 1.0 / settings.watch.false_alarm)
