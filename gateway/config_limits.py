"""`[limits]`: what a request may contain, and what all of them may hold together."""

from pydantic import Field, model_validator

from gateway.config_section import Section


class LimitsSection(Section):
    """`[limits]`: what a request may contain. Beyond any of these the answer is a 4xx."""

    max_body_bytes: int = Field(default=33_554_432, ge=1024, le=1_073_741_824)
    """Longest request body, as sent and again after decompression (413)."""
    max_bodies_bytes: int = Field(default=1_073_741_824, ge=4096, le=1_099_511_627_776)
    """Most bytes of request bodies in memory at once, over all connections: what has arrived and
    what it was decoded to, until the answer. Beyond it the answer is 529; a quarter is kept for
    bodies of up to 64 KiB. At least four times `max_body_bytes`."""
    max_values: int = Field(default=100_000, ge=1000, le=100_000_000)
    """Most JSON values in one request, told by its commas and opening brackets, those in texts
    included. Parsing many small values holds up every other request; long texts do not."""
    max_questions: int = Field(default=255, ge=1, le=10_000)
    """Most questions in one request."""
    max_id_chars: int = Field(default=1024, ge=1, le=65_536)
    """Longest question id."""
    max_option_chars: int = Field(default=4096, ge=1, le=1_000_000)
    """Longest option name of a choice."""
    max_text_chars: int = Field(default=8_388_608, ge=1, le=1_073_741_824)
    """Longest string anywhere in state, instructions or criteria."""
    max_depth: int = Field(default=64, ge=1, le=150)
    """Deepest nesting of a structured state, instruction or description."""
    max_assets: int = Field(default=16, ge=1, le=1000)
    """Most images sent along with one request."""

    @model_validator(mode="after")
    def _refuse_no_room_for_one(self) -> "LimitsSection":
        if self.max_bodies_bytes < 4 * self.max_body_bytes:
            raise ValueError(
                f"max_bodies_bytes is {self.max_bodies_bytes}; it must be at least 4 times "
                f"max_body_bytes ({self.max_body_bytes}), or one body could fill it"
            )
        return self
