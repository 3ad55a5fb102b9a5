"""What came of reading the configuration again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the last reload."""

    count: int = 0
    """Reloads that were asked for since the start."""
    error: str | None = None
    """Why the old settings are still in force; `None` = they are not, or nobody asked."""
    changed: tuple[str, ...] = ()
    """Settings that have another value now."""
    kept: tuple[str, ...] = ()
    """Settings that the file wants to be different, and that need a restart."""
