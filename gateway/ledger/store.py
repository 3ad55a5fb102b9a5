"""What a store of keys and charges promises: the values, the errors, the protocol.

`sqlite.py` keeps the promise in one file; another store has the same methods. Methods block and
are called on the writer's thread or by the command line, never on an event loop. Times are Unix
seconds; money is in nanos, 1e-9 of the currency, always an `int`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

import orjson

from gateway.ledger.calendar import Windows
from gateway.ledger.decisions import DecisionLog
from gateway.ledger.reports import Reports
from policies.confidence import Formula
from policies.limits import Amounts, Limits

Scope: TypeAlias = Literal["decide", "usage", "metrics", "admin"]


@dataclass(frozen=True, slots=True)
class Key:
    """A named right to ask, without its secrets."""

    key_id: str
    """Public, `k_` and ten hexadecimal digits; what charges refer to."""
    name: str
    created_s: float
    expires_s: float | None = None
    revoked_s: float | None = None
    scopes: frozenset[Scope] = frozenset({"decide", "usage"})
    models: frozenset[str] | None = None
    """Names and aliases it may ask for; `None` = all."""
    confidence: Formula = "jev"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Secret:
    """One bearer key of a key; there are two while a rotation overlaps."""

    prefix: str
    key_id: str
    digest: bytes = field(repr=False)
    created_s: float
    expires_s: float | None = None


class ChargedStep(NamedTuple):
    """What one engine did for a charge."""

    engine: str
    tokens: int
    busy_us: int
    """Engine time in microseconds: whole numbers, so that sums are exact."""
    nanos: int | None = None
    """`None` = unpriced."""


Row: TypeAlias = tuple[
    float, str, str, str | None, str, str, int, int, int, int, int, int, str | None, int, int,
    int | None, str | None,
]  # fmt: skip
"""A charge as the ledger keeps it.

at_s, key_id, request_id, model_asked, model_served, steps as JSON, tokens, busy_us, nouls, choices,
scores, escalated, reasons as JSON, cached, status, nanos, price_version.
"""


class Charge(NamedTuple):
    """One row of the ledger. A tuple: a frozen dataclass takes four times as long to make."""

    at_s: float
    """When the work was admitted."""
    key_id: str
    """Of a key in the store, `config/NAME` for one of the configuration, or `anonymous`."""
    request_id: str
    model_asked: str | None
    model_served: str
    steps: tuple[ChargedStep, ...]
    nouls: int
    choices: int
    scores: int
    status: int
    """As answered; 499 = the caller left."""
    escalated: int = 0
    reasons: Mapping[str, int] | None = None
    """Why questions went up → how many."""
    cached: bool = False
    nanos: int | None = None
    """`None` = unpriced."""
    price_version: str | None = None

    @property
    def tokens(self) -> int:
        """Every token every engine read; the same number as `usage.input_tokens`."""
        tokens = 0
        for step in self.steps:
            tokens += step.tokens
        return tokens

    @property
    def row(self) -> Row:
        """The same as the ledger keeps it."""
        reasons = orjson.dumps(dict(self.reasons)).decode() if self.reasons else None
        return (
            *(self.at_s, self.key_id, self.request_id, self.model_asked, self.model_served),
            orjson.dumps([tuple(step) for step in self.steps]).decode(),
            self.tokens,
            sum([step.busy_us for step in self.steps]),
            *(self.nouls, self.choices, self.scores, self.escalated, reasons),
            *(int(self.cached), self.status, self.nanos, self.price_version),
        )


class KeptText(NamedTuple):
    """What was asked and answered; only where the operator wants it kept."""

    asked: str
    answered: str | None
    """`None` = there was no answer."""
    cut: bool
    """Whether one of them was too long and ends in the middle."""


class Charged(NamedTuple):
    """A charge as it stands in the ledger."""

    charge_id: int
    """Rises with every charge."""
    key: str
    """The key's name; its id for keys that are not in the store."""
    charge: Charge


@dataclass(frozen=True, slots=True)
class Replay:
    """What is known about an Idempotency-Key."""

    body: bytes
    """SHA-256 of the body it came with first."""
    answer: bytes | None
    """`None` = somebody is still working on it."""


class StoreError(Exception):
    """The store cannot be read or written. The message names neither path nor content."""


class Unfit(Exception):
    """A value breaks a rule of the schema. It is never going to fit: our fault."""


class NoSuchKey(Exception):
    """No key has that name or id."""


class NameTaken(Exception):
    """A key of that name exists or existed. Names are used once, so that bills stay true."""


class Keys(Protocol):
    """The part of a store that the command line and the admin routes change."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read inside is of one moment."""
        ...

    def stirred(self) -> bytes:
        """Something that is another value after a change to any key; costs next to nothing."""
        ...

    def generation(self) -> int:
        """A number that moves with every change to any key, whoever made it."""
        ...

    def every_key(self) -> list[Key]:
        """Every key, also revoked and expired ones, oldest first."""
        ...

    def secrets(self) -> list[Secret]:
        """Every secret of every key."""
        ...

    def add_key(self, key: Key, secret: Secret) -> None:
        """Raises: NameTaken."""
        ...

    def rotate(self, key_id: str, secret: Secret, old_expire_s: float) -> None:
        """Add a secret; the older ones end at `old_expire_s` unless they end before."""
        ...

    def revoke(self, key_id: str, now_s: float) -> None:
        """End the key; a key that is revoked already keeps its date."""
        ...

    def set_limits(self, key_id: str, limits: Limits) -> None:
        """Replace every limit of the key."""
        ...


class Store(Keys, DecisionLog, Reports, Protocol):
    """Keys, leases, charges, replays, decisions, reports."""

    def transaction(self) -> AbstractContextManager[None]:
        """Everything called inside is written together or not at all.

        Outside of one, every method is a transaction of its own.
        """
        ...

    def spent(self, key_id: str, windows: Windows) -> tuple[Amounts, Amounts]:
        """What was settled in the day and in the month."""
        ...

    def leased(self, key_id: str, now_s: float, until_s: float) -> Amounts:
        """The sum of the leases that expire after `now_s` and not after `until_s`.

        One that claims to expire later was written by a clock that has gone back since.
        """
        ...

    def lease(self, lease_id: int, key_id: str, amounts: Amounts, expires_s: float) -> None:
        """Hold an upper bound until it is settled, released or expired."""
        ...

    def shrink(self, lease_id: int, amounts: Amounts) -> None:
        """Hold no more than this; for a lease that is not there any more, nothing."""
        ...

    def release(self, lease_id: int) -> None:
        """Give a lease back; one that is not there any more is fine."""
        ...

    def charge(self, charge: Charge, day_s: int) -> None:
        """Append its row and add it to the balance of the day that began at `day_s`."""
        ...

    def charge_kept(self, row: Row, day_s: int, text: KeptText) -> None:
        """As `charge`; the text is kept beside the row, and goes when the row does."""
        ...

    def charge_rows(self, rows: Sequence[Row], day_s: int) -> None:
        """As `charge` of each; all of them belong to one day."""
        ...

    def recent(
        self, at_most: int, *, before: int | None = None, key_id: str | None = None
    ) -> list[Charged]:
        """The last charges that are not rolled up, newest first.

        Only those with a smaller `charge_id` than `before`, and of one key, where given.
        """
        ...

    def replay(
        self, key_id: str, idempotency: bytes, now_s: float, until_s: float
    ) -> Replay | None:
        """What is known about this Idempotency-Key; `None` = nothing, or expired.

        Nobody is working on it who claims to do so after `until_s`: that was written by a clock
        that has gone back since.
        """
        ...

    def begin_replay(
        self, key_id: str, idempotency: bytes, body: bytes, owner: int, expires_s: float
    ) -> None:
        """Note that `owner` is working on it."""
        ...

    def finish_replay(
        self, key_id: str, idempotency: bytes, owner: int, answer: bytes | None, expires_s: float
    ) -> None:
        """Keep the answer until `expires_s`; forget the whole for `None`. Only by its owner."""
        ...

    def sweep(self, now_s: float, at_most: int) -> int:
        """Delete expired leases and replays, a few at a time; how many there were."""
        ...

    def prune(self, before_s: float, at_most: int) -> int:
        """Move the oldest charges made before `before_s` into the daily sums; how many."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...
