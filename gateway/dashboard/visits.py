"""Who looks at a page: logins, kept in memory, and tokens that forms must carry. Knows no HTML."""

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass

from cachetools import LRUCache, TTLCache

from gateway.errors import Problem, Refusal
from policies.limits import paced

_MOST_SESSIONS = 256
_MOST_ADDRESSES = 4096
LOGINS_PER_MINUTE = 10
"""Tries for each address; the next ones have to wait."""


@dataclass(slots=True)
class Session:
    """A login. The key itself is not kept, only the public part of the secret it was made with."""

    prefix: str
    notice: "Notice | None" = None
    """Shown on the next page, once."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that has been done."""

    message: str
    secret: str = ""
    """The bearer key that was made; it is shown once."""

    def __repr__(self) -> str:
        return f"Notice({self.message!r})"


class Visits:
    """The logins of a running gateway. Confined to the event loop."""

    def __init__(self, session_s: float) -> None:
        """A session ends after so many seconds, or when there are too many newer ones."""
        self._sessions: TTLCache[bytes, Session] = TTLCache(_MOST_SESSIONS, session_s)
        self._arrivals: LRUCache[str, float] = LRUCache(_MOST_ADDRESSES)
        self._secret = secrets.token_bytes(32)

    def open(self, prefix: str) -> str:
        """A new session for a secret of the store; the cookie that stands for it."""
        cookie = stranger()
        self._sessions[_digest(cookie)] = Session(prefix)
        return cookie

    def session(self, cookie: str) -> Session | None:
        """The session behind a cookie; `None` = there is none, or none any more."""
        found: Session | None = self._sessions.get(_digest(cookie))
        return found

    def close(self, cookie: str) -> None:
        """End the session behind a cookie, if there is one."""
        self._sessions.pop(_digest(cookie), None)

    def token(self, cookie: str) -> str:
        """What forms must carry that are sent together with this cookie: 64 hexadecimal digits."""
        return hmac.new(self._secret, cookie.encode(), hashlib.sha256).hexdigest()

    def fits(self, cookie: str, token: str) -> bool:
        """Whether a form comes from a page that was made for this cookie."""
        return bool(cookie) and hmac.compare_digest(self.token(cookie).encode(), token.encode())

    def admit_try(self, address: str, now_s: float) -> None:
        """Count one try to log in from an address; of IPv6, from its /64.

        Raises:
            Refusal: 429 when it comes too early.
        """
        place = _place(address)
        pace = paced(self._arrivals.get(place, 0.0), now_s, LOGINS_PER_MINUTE)
        if pace.wait_s:
            message = f"Too many tries to log in; try again in {pace.wait_s:.0f} s."
            raise Refusal(Problem("rate_limited", message, retry_after_s=pace.wait_s))
        self._arrivals[place] = pace.arrival_s


def stranger() -> str:
    """A cookie that stands for nobody: 256 random bits in base64url."""
    return secrets.token_urlsafe(32)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


def _place(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
