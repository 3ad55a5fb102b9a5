"""Who is asking: bearer keys, compared by digest.

Keys are long and random, so one SHA-256 is enough; a slow hash on the hot path would only help
whoever wants to slow the gateway down.
"""

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.errors import Problem, Refusal, refusal
from gateway.keys import prefix_of
from gateway.ledger.store import Key, Keys, Scope, Secret, StoreError
from policies.confidence import Formula
from policies.limits import UNLIMITED, Limits


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request, and what it may do."""

    name: str
    """The key's name; `anonymous` when there are no keys."""
    key_id: str = "anonymous"
    """What charges refer to."""
    scopes: frozenset[Scope] = frozenset({"decide", "usage"})
    models: frozenset[str] | None = None
    """`None` = all."""
    confidence: Formula = "jev"
    limits: Limits = UNLIMITED
    budgeted: bool = False
    """Whether any of the limits is a budget."""

    def require(self, scope: Scope) -> None:
        """Raises: Refusal: 403 without the scope; `admin` may do everything."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise refusal("forbidden", f"This API key does not have the scope '{scope}'.")

    def require_model(self, *names: str) -> None:
        """Raises: Refusal: 403 when the key may ask for none of these names of one model."""
        if self.models is not None and self.models.isdisjoint(names):
            allowed = ", ".join(sorted(self.models)) or "none"
            raise refusal("forbidden", f"This API key may only ask for these models: {allowed}.")


ANONYMOUS = Caller("anonymous", scopes=frozenset({"decide", "usage", "metrics"}))
_ASKER = Caller("anonymous")
"""Whoever asks without a key where only /metrics wants one."""

CALLER = "tiergate.caller"
"""Where in the scope of a request somebody stands who was admitted by other means than a key."""


_MOST_SEEN = 4096
"""Headers whose digests are kept; then they are forgotten and computed anew."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A secret of the store, and whom it stands for."""

    secret: Secret
    key: Key
    caller: Caller
    ends_s: float
    """When either of them expires; infinite = never."""


class KeyRing:
    """Every key there is: those of the configuration and those of the store.

    The store is asked on each request whether any key has changed, so that a revoked key fails on
    its next request, on connections that are open already too.
    """

    def __init__(
        self,
        static: Mapping[str, str],
        source: Keys | None = None,
        *,
        scrapers: Mapping[str, str] | None = None,
    ) -> None:
        """`static` and `scrapers`: name → bearer key; the latter may only read `/metrics`.

        Reads from `source` happen where `authenticate` is called.

        Raises:
            StoreError: the source cannot be read.
        """
        self._static = {
            _digest(key): Caller(name, f"config/{name}") for name, key in static.items()
        }
        self._scrapers = {
            _digest(key): Caller(name, f"config/{name}", scopes=frozenset({"metrics"}))
            for name, key in (scrapers or {}).items()
        }
        self._source = source
        self._stirred = b""
        self._generation = -1
        self._checked_s = 0.0
        self._entries: dict[str, _Entry] = {}
        self.open = not self._static
        """Whether there are no keys at all, revoked ones included: everyone is `ANONYMOUS`."""
        self._keys: list[Key] = []
        self._seen: dict[bytes, tuple[Caller, float]] = {}
        """SHA-256 of a header that was right → whose it is, and until when."""
        if source is not None:
            self._reload(source, 0.0)

    @property
    def keys(self) -> list[Key]:
        """The store's keys as last read."""
        return self._keys

    def authenticate(self, authorization: bytes, now_s: float) -> Caller:
        """The caller behind an `Authorization` header.

        The scheme's case and blanks around the key do not matter.

        Raises:
            Refusal: 403 for no key at all, 401 for one that is wrong, revoked or expired; 503
                when the store cannot be read.
        """
        source = self._source
        if source is not None and not (
            self._checked_s <= now_s < self._checked_s + 1.0 and source.stirred() == self._stirred
        ):
            self._refresh(source, now_s)
        if self.open:
            if not self._scrapers:
                return ANONYMOUS
            digest = hashlib.sha256(_bearer(authorization)).digest()
            return _found(self._scrapers, digest) or _ASKER
        whole = hashlib.sha256(authorization).digest()
        seen = self._seen.get(whole)
        if seen is not None and now_s < seen[1]:
            return seen[0]
        caller, ends_s = self._known(authorization, now_s)
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen[whole] = caller, ends_s
        return caller

    def _known(self, authorization: bytes, now_s: float) -> tuple[Caller, float]:
        """The caller behind the header, and until when. Raises: Refusal: see `authenticate`."""
        bearer = _bearer(authorization)
        if not bearer:
            raise refusal("key_missing", "No API key; send 'Authorization: Bearer <key>'.")
        digest = hashlib.sha256(bearer).digest()
        prefix = prefix_of(bearer)
        entry = None if prefix is None else self._entries.get(prefix)
        if entry is not None and hmac.compare_digest(entry.secret.digest, digest):
            return _in_force(entry, now_s), entry.ends_s
        caller = _found(self._static, digest) or _found(self._scrapers, digest)
        if caller is None:
            raise refusal("key_wrong", "The API key is not valid.")
        return caller, math.inf

    def standing(self, prefix: str, now_s: float) -> Caller:
        """The caller behind a secret of the store that was shown before, as things are now.

        Raises:
            Refusal: 401 when it is gone, revoked or expired; 503 when the store cannot be read.
        """
        if self._source is not None:
            self._refresh(self._source, now_s)
        entry = self._entries.get(prefix)
        if entry is None:
            raise refusal("key_wrong", "The API key is not valid.")
        return _in_force(entry, now_s)

    def _refresh(self, source: Keys, now_s: float) -> None:
        """Know of every change to a key; once a second also of those that nobody told of."""
        try:
            self._reload(source, now_s)
        except StoreError as error:
            raise Refusal(unwritable()) from error

    def _reload(self, source: Keys, now_s: float) -> None:
        stirred = source.stirred()  # before reading: what changes meanwhile is read next time
        if source.generation() != self._generation:
            with source.snapshot():
                generation = source.generation()
                self._keys = source.every_key()
                secrets = source.secrets()
            keys = {key.key_id: key for key in self._keys}
            callers = {key.key_id: _caller(key) for key in self._keys}
            self._entries = {
                one.prefix: _entry(one, keys[one.key_id], callers[one.key_id]) for one in secrets
            }
            self._generation = generation
            self._seen = {}
            self.open = not self._static and not self._keys
        self._stirred, self._checked_s = stirred, now_s


def unwritable() -> Problem:
    """The refusal of everything that cannot be accounted for."""
    return Problem("ledger_down", "The ledger cannot be used.", retry_after_s=2.0)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _bearer(authorization: bytes) -> bytes:
    """The key in an `Authorization` header; empty when there is none."""
    scheme, *rest = authorization.split(None, 1) or (b"",)
    return rest[0].strip() if rest and scheme.lower() == b"bearer" else b""


def _found(callers: Mapping[bytes, Caller], digest: bytes) -> Caller | None:
    for known, caller in callers.items():
        if hmac.compare_digest(known, digest):
            return caller
    return None


def _entry(secret: Secret, key: Key, caller: Caller) -> _Entry:
    ends = [end for end in (key.expires_s, secret.expires_s) if end is not None]
    return _Entry(secret, key, caller, min(ends, default=math.inf))


def _caller(key: Key) -> Caller:
    limits = key.limits
    ours = (key.name, key.key_id, key.scopes, key.models, key.confidence)
    return Caller(*ours, limits, limits.has_budgets)


def _in_force(entry: _Entry, now_s: float) -> Caller:
    if entry.key.revoked_s is not None:
        raise refusal("key_wrong", "The API key has been revoked.")
    if entry.ends_s <= now_s:
        raise refusal("key_wrong", "The API key has expired.")
    return entry.caller
