"""`/v1/admin/keys`: what `tiergate keys` does, for keys with the scope `admin`. Knows no HTTP."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

import orjson

from gateway import issuing
from gateway.auth import Caller, unwritable
from gateway.errors import Fault, Refusal, invalid, refusal
from gateway.ledger.books import Books
from gateway.ledger.store import Key, NameTaken, NoSuchKey, Store, StoreError

PATH = "/v1/admin/keys"

Action: TypeAlias = Literal["list", "create", "info", "rotate", "revoke", "limits"]

ROUTES: tuple[tuple[str, str, Action], ...] = (
    ("GET", PATH, "list"),
    ("POST", PATH, "create"),
    ("GET", PATH + "/{name}", "info"),
    ("POST", PATH + "/{name}/rotate", "rotate"),
    ("POST", PATH + "/{name}/revoke", "revoke"),
    ("PATCH", PATH + "/{name}/limits", "limits"),
)
"""Method, path, action."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the actions work with."""

    books: Books | None
    models: Sequence[str]
    """Every name and alias that a key may be bound to."""
    unpriced: Sequence[str]
    """Engines without a price, so that no money budget can be kept."""


async def admin_answer(
    action: Action, caller: Caller, desk: Desk, name: str, body: bytes
) -> dict[str, Any]:
    """The JSON that answers an action on the key called `name`.

    Raises:
        Refusal: 403 without the scope, 404 without a ledger or such a key, 409 for a name that
            is taken, 422 for a wish that cannot be granted, 503 when the ledger is unusable.
    """
    caller.require("admin")
    if desk.books is None:
        raise refusal("not_found", "There is no ledger here, so there are no keys to change.")
    if action not in ("list", "info") and desk.books.writer.failing:
        raise Refusal(unwritable())
    try:
        return await _answered(action, desk, desk.books, name, body)
    except ValueError as error:
        raise invalid(Fault("value_error", ("body",), f"{error}")) from None
    except NoSuchKey:
        raise refusal("not_found", "There is no such key.") from None
    except NameTaken as error:
        raise refusal("name_taken", f"{error}.") from None
    except StoreError as error:
        raise Refusal(unwritable()) from error


async def _answered(
    action: Action, desk: Desk, books: Books, name: str, body: bytes
) -> dict[str, Any]:
    now_s = time.time()

    def listed(store: Store) -> dict[str, Any]:
        secrets = store.secrets()
        return {"keys": [issuing.shown(key, secrets, now_s) for key in store.every_key()]}

    def shown(store: Store, key: Key) -> dict[str, Any]:
        return issuing.shown(key, store.secrets(), now_s)

    def issued(store: Store, one: issuing.Issued) -> dict[str, Any]:
        return {"key": one.minted.text, **shown(store, one.key)}

    match action:
        case "list":
            return await books.read(listed)
        case "info":
            return await books.read(lambda store: shown(store, issuing.named(store, name)))
        case "create":
            wish = _wish(body, desk)
            return await books.writer.submit(
                lambda store: issued(store, issuing.create(store, wish, desk.models, now_s))
            )
        case "rotate":
            return await books.writer.submit(
                lambda store: issued(store, issuing.rotate(store, name, now_s))
            )
        case "revoke":
            return await books.writer.submit(
                lambda store: shown(store, issuing.revoke(store, name, now_s))
            )
        case "limits":
            wish = _wish(body, desk)
            return await books.writer.submit(
                lambda store: shown(store, issuing.set_limits(store, name, wish))
            )
    assert_never(action)


def _wish(body: bytes, desk: Desk) -> dict[str, Any]:
    """The body as an object. Raises: ValueError."""
    try:
        wish = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ValueError("the body is not valid JSON") from None
    if not isinstance(wish, dict):
        raise ValueError("the body must be an object")
    issuing.refuse_unpriced(wish, desk.unpriced)
    return wish
