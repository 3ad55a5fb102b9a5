"""What clients are told about the models they may ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Card:
    """One name in `GET /v1/models`."""

    name: str
    description: str
    release_date: str
    """`YYYY-MM-DD`."""


def model_list(cards: Sequence[Card]) -> dict[str, object]:
    """The System One list and, beside it, the keys of an OpenAI model list."""
    return {
        "models": [
            {"name": c.name, "description": c.description, "release_date": c.release_date}
            for c in cards
        ],
        "object": "list",
        "data": [
            {
                "id": c.name,
                "object": "model",
                "created": int(datetime.fromisoformat(f"{c.release_date}T00:00Z").timestamp()),
                "owned_by": "tiergate",
            }
            for c in cards
        ],
    }
