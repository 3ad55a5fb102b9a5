"""Bearer keys: how they look, how they are made, how long they last. Knows no store."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

from gateway.ledger.store import Secret

_FORM = re.compile(rb"tg_([0-9a-f]{10})_[A-Za-z0-9_-]{43}")
_DURATION = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,99}")
"""What a key may be called."""

KEY_ID = re.compile(r"k_[0-9a-f]{10}")
"""What `new_key_id` makes."""

ROTATION_OVERLAP_S = 86_400.0
"""How long the old secret still works after a rotation."""


@dataclass(frozen=True, slots=True)
class Minted:
    """A new bearer key. The text is shown once and kept nowhere."""

    text: str = field(repr=False)
    secret: Secret


def new_key_id() -> str:
    """`k_` and ten hexadecimal digits."""
    return f"k_{secrets.token_hex(5)}"


def mint(key_id: str, now_s: float) -> Minted:
    """A bearer key for `key_id`: `tg_`, a public prefix, 256 random bits in base64url."""
    prefix = secrets.token_hex(5)
    text = f"tg_{prefix}_{secrets.token_urlsafe(32)}"
    return Minted(text, Secret(prefix, key_id, digest(text.encode()), now_s))


def digest(bearer: bytes) -> bytes:
    """SHA-256; keys are random enough for it, and a slow hash would help only attackers."""
    return hashlib.sha256(bearer).digest()


def prefix_of(bearer: bytes) -> str | None:
    """The public part of a bearer key; `None` = it is not one of the store's."""
    found = _FORM.fullmatch(bearer)
    return None if found is None else found[1].decode()


def seconds_of(duration: str) -> float:
    """`90d`, `24h`, `30m`, `45s` in seconds.

    Raises:
        ValueError: anything else.
    """
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError(f"'{duration}' is not a duration; write e.g. 90d, 24h or 30m")
    return float(found[1]) * _SECONDS[found[2]]
