"""Settings to the limits that bodies and asks are held to."""

from gateway.body import BodyLimits
from gateway.config import Settings
from gateway.dialects.systemone import AskLimits
from gateway.dialects.systemone_text import TextLimits
from gateway.room import Room


def body_limits(settings: Settings, room: Room | None = None) -> BodyLimits:
    """What reading bodies may cost, with an empty room for all of them.

    Or with the `room` that bodies are in already, if it is as large as the settings want.
    """
    limits = settings.limits
    if room is None or room.max_bytes != limits.max_bodies_bytes:
        room = Room(limits.max_bodies_bytes)
    return BodyLimits(limits.max_body_bytes, settings.server.body_deadline_s, room)


def ask_limits(settings: Settings) -> AskLimits:
    """What one request may contain."""
    limits = settings.limits
    return AskLimits(
        max_values=limits.max_values,
        max_questions=limits.max_questions,
        max_id_chars=limits.max_id_chars,
        max_option_chars=limits.max_option_chars,
        max_assets=limits.max_assets,
        text=TextLimits(limits.max_text_chars, limits.max_depth),
    )
