"""Who is asking: bearer keys, compared by digest.

Keys are long and random, so one SHA-256 is enough; a slow hash on the hot path would only help
whoever wants to slow the gateway down.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.errors import refusal


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request."""

    name: str
    """The key's name in the configuration; `anonymous` when there are no keys."""


ANONYMOUS = Caller("anonymous")


def digests_of(keys: Mapping[str, str]) -> dict[bytes, str]:
    """SHA-256 of each key → its name."""
    return {hashlib.sha256(key.encode()).digest(): name for name, key in keys.items()}


def authenticate(authorization: bytes, digests: Mapping[bytes, str]) -> Caller:
    """The caller behind an `Authorization` header; without keys everyone is `ANONYMOUS`.

    The scheme's case and blanks around the key do not matter.

    Raises:
        Refusal: 403 for no key at all, 401 for a wrong one.
    """
    if not digests:
        return ANONYMOUS
    scheme, _, key = authorization.strip().partition(b" ")
    key = key.strip()
    if scheme.lower() != b"bearer" or not key:
        raise refusal("key_missing", "No API key; send 'Authorization: Bearer <key>'.")
    digest = hashlib.sha256(key).digest()
    for known, name in digests.items():
        if hmac.compare_digest(known, digest):
            return Caller(name)
    raise refusal("key_wrong", "The API key is not valid.")
