"""Making and changing keys: what the command line and the admin routes have in common."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeAlias, cast, get_args

from gateway.auth import ANONYMOUS
from gateway.keys import KEY_ID, NAME, ROTATION_OVERLAP_S, Minted, mint, new_key_id, seconds_of
from gateway.ledger.store import Key, Keys, NoSuchKey, Scope, Secret
from policies.confidence import Formula
from policies.limits import Limits
from policies.pricing import NANOS

Wish: TypeAlias = Mapping[str, Any]
"""JSON: what somebody wants of a key, by the names below."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
FORMULAS: tuple[Formula, ...] = get_args(Formula)

_COUNTS = tuple(one.name for one in fields(Limits) if not one.name.startswith("nanos"))
_MONEY = {"usd_per_day": "nanos_per_day", "usd_per_month": "nanos_per_month"}
LIMITS = (*_COUNTS, *_MONEY)
"""Names of the limits as they are wished for."""
WISHES = ("name", "expires", "scopes", "models", "confidence", *LIMITS)

_MOST = 10**15
_MONEY_FORM = re.compile(r"(?=\.?[0-9])[0-9]{0,10}(\.[0-9]{0,12})?([eE]-?[0-9]{1,2})?")
"""Numbers as people and JSON write them; none of them is too much for a `Decimal`."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A key and its new bearer text, which is shown once."""

    key: Key
    minted: Minted


def create(store: Keys, wish: Wish, known_models: Iterable[str], now_s: float) -> Issued:
    """A new key, in the store.

    Raises:
        ValueError: with a sentence, for a wish that cannot be granted.
        NameTaken: a key of that name exists or existed.
    """
    _refuse_unknown(wish, WISHES)
    name = wish.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            "a key's name is 1 to 100 letters, digits or any of _ . : @ -, and begins with a "
            "letter or a digit"
        )
    if name == ANONYMOUS.key_id or KEY_ID.fullmatch(name):
        raise ValueError(f"'{name}' cannot be a key's name: bills and commands mean another by it")
    expires = wish.get("expires")
    key = Key(
        key_id=new_key_id(),
        name=name,
        created_s=now_s,
        expires_s=None if expires is None else now_s + seconds_of(str(expires)),
        scopes=_scopes(wish.get("scopes")),
        models=_models(wish.get("models"), known_models),
        confidence=_confidence(wish.get("confidence")),
        limits=changed(Limits(), wish),
    )
    minted = mint(key.key_id, now_s)
    store.add_key(key, minted.secret)
    return Issued(key, minted)


def rotate(store: Keys, name: str, now_s: float) -> Issued:
    """A new secret for the key; the old one works for another 24 hours.

    Raises:
        NoSuchKey: no key has that name.
        ValueError: the key is revoked or has expired, so that no secret of it would work.
    """
    key = named(store, name)
    if key.revoked_s is not None:
        raise ValueError(f"the key '{key.name}' is revoked; make a new one")
    if key.expires_s is not None and key.expires_s <= now_s:
        raise ValueError(f"the key '{key.name}' has expired; make a new one")
    minted = mint(key.key_id, now_s)
    store.rotate(key.key_id, minted.secret, now_s + ROTATION_OVERLAP_S)
    return Issued(key, minted)


def revoke(store: Keys, name: str, now_s: float) -> Key:
    """End the key for good. Raises: NoSuchKey."""
    store.revoke(named(store, name).key_id, now_s)
    return named(store, name)


def set_limits(store: Keys, name: str, wish: Wish) -> Key:
    """Change the limits that are named; `None` takes one away.

    Raises:
        NoSuchKey: no key has that name.
        ValueError: with a sentence, for a wish that cannot be granted.
    """
    _refuse_unknown(wish, LIMITS)
    key = named(store, name)
    store.set_limits(key.key_id, changed(key.limits, wish))
    return named(store, name)


def refuse_unpriced(wish: Wish, unpriced: Sequence[str]) -> None:
    """Raises: ValueError: the wish has a money budget, but some engine has no price."""
    if unpriced and any(wish.get(name) is not None for name in _MONEY):
        raise ValueError(
            f"a money budget needs prices, but the engine '{unpriced[0]}' has none; "
            f"write [[prices.engines.{unpriced[0]}]]"
        )


def named(store: Keys, name: str) -> Key:
    """The key of this name or id. Raises: NoSuchKey."""
    for key in store.every_key():
        if name in (key.name, key.key_id):
            return key
    raise NoSuchKey(f"there is no key named '{name}'")


def shown(key: Key, secrets: Iterable[Secret], now_s: float) -> dict[str, Any]:
    """The key as JSON, without anything secret."""
    limits: dict[str, Any] = {name: getattr(key.limits, name) for name in _COUNTS}
    for wished, stored in _MONEY.items():
        nanos = getattr(key.limits, stored)
        limits[wished] = None if nanos is None else format(Decimal(nanos) / NANOS, "f")
    ends = (key.expires_s,)
    state = "revoked" if key.revoked_s is not None else "active"
    if state == "active" and any(end is not None and end <= now_s for end in ends):
        state = "expired"
    return {
        "id": key.key_id,
        "name": key.name,
        "state": state,
        "created": _date(key.created_s),
        "expires": _date(key.expires_s),
        "revoked": _date(key.revoked_s),
        "scopes": sorted(key.scopes),
        "models": None if key.models is None else sorted(key.models),
        "confidence": key.confidence,
        "limits": limits,
        "secrets": [
            {
                "prefix": f"tg_{one.prefix}_",
                "created": _date(one.created_s),
                "expires": _date(one.expires_s),
            }
            for one in sorted(secrets, key=lambda one: one.created_s)
            if one.key_id == key.key_id
        ],
    }


def changed(limits: Limits, wish: Wish) -> Limits:
    """The limits with those of the wish instead. Raises: ValueError."""
    counts = {name: _count(name, wish[name]) for name in _COUNTS if name in wish}
    money = {stored: _nanos(name, wish[name]) for name, stored in _MONEY.items() if name in wish}
    return replace(limits, **counts, **money)


def _count(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"{name} must be a whole number from 0 to {_MOST}")
    return value


def _nanos(name: str, value: object) -> int | None:
    if value is None:
        return None
    text = "" if isinstance(value, bool) else str(value)
    nanos = Decimal(text) * NANOS if _MONEY_FORM.fullmatch(text) else Decimal(-1)
    if not 0 <= nanos <= _MOST or nanos != nanos.to_integral_value():
        raise ValueError(
            f"{name} must be US dollars from 0 to {_MOST // NANOS} with at most 9 decimals, "
            "e.g. 2.50"
        )
    return int(nanos)


def _scopes(wished: object) -> frozenset[Scope]:
    if wished is None:
        return frozenset({"decide", "usage"})
    names = _strings("scopes", wished)
    if not names or not names <= set(SCOPES):
        raise ValueError(f"scopes are some of {', '.join(SCOPES)}")
    return frozenset(cast("set[Scope]", names))


def _models(wished: object, known: Iterable[str]) -> frozenset[str] | None:
    if wished is None:
        return None
    names, there = _strings("models", wished), list(known)
    if unknown := sorted(names.difference(there)):
        raise ValueError(
            f"there is no model '{unknown[0]}'; there are: {', '.join(there) or 'none'}"
        )
    return frozenset(names)


def _confidence(wished: object) -> Formula:
    if wished is None:
        return "jev"
    for formula in FORMULAS:
        if wished == formula:
            return formula
    raise ValueError(f"confidence is one of {', '.join(FORMULAS)}")


def _strings(name: str, value: object) -> set[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name} must be a list of names")
    return set(value)


def _refuse_unknown(wish: Wish, known: tuple[str, ...]) -> None:
    if unknown := sorted(set(wish) - set(known)):
        raise ValueError(f"there is no '{unknown[0]}'; there are: {', '.join(known)}")


def _date(at_s: float | None) -> str | None:
    return None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
