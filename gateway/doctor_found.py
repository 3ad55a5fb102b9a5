"""What `tiergate doctor` says of one thing."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["fine", "finding"]


@dataclass(frozen=True, slots=True)
class Found:
    """What one check says."""

    check: str
    level: Level
    message: str
    """A sentence; for a finding with what to do about it."""


def fine(check: str, message: str) -> Found:
    """What is as it should be."""
    return Found(check, "fine", message)


def finding(check: str, message: str) -> Found:
    """What somebody has to do something about."""
    return Found(check, "finding", message)
