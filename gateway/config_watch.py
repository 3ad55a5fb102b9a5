"""`[watch]`: what is remembered of cascades, and how their promises are tested in service."""

from pydantic import Field

from gateway.config_section import Section


class WatchSection(Section):
    """`[watch]`: for models with several `tiers`, where there is a ledger."""

    log: bool = True
    """Keep what each engine made of each question: probabilities and digests, no text."""
    retention_days: int = Field(default=30, ge=1, le=36_500)
    """Decisions older than this are deleted."""
    shadow_share: float = Field(default=0.01, ge=0, le=1)
    """Of the answers that were kept without asking the last engine, how many it reads afterwards,
    off the request's path; 0 = none."""
    shadow_tokens_per_day: int = Field(default=1_000_000, ge=0, le=10**15)
    """Most tokens of such second opinions in a day (UTC), for each gateway."""
    shadow_waiting: int = Field(default=256, ge=1, le=100_000)
    """Second opinions that may wait; beyond that they are dropped and counted."""
    most_disagreement: float = Field(default=0.0, ge=0, lt=1)
    """Of the kept answers, the share with which the last engine may disagree; 0 = what the policy
    promises: its risk, plus `last_engine_error` where it was certified with labels. Without
    either there is nothing to test."""
    last_engine_error: float = Field(default=0.0, ge=0, lt=1)
    """Share of answers that the last engine itself gets wrong, as measured with labels."""
    false_alarm: float = Field(default=0.01, gt=0, lt=1)
    """Most probability that a promise which is kept is ever called broken, for each engine and
    cell."""
