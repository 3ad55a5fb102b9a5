"""`GET /v1/usage`: a key sees its own usage, `admin` that of all keys. Knows no HTTP."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.auth import Caller, unwritable
from gateway.config_prices import CURRENCY
from gateway.errors import Refusal, refusal
from gateway.ledger.books import Books
from gateway.ledger.store import StoreError
from gateway.usage import Report, report, today_utc, usage_query


async def usage_answer(
    books: Books | None, caller: Caller, parameters: Mapping[str, str], now_s: float
) -> Report:
    """The report that the caller may see; read on a thread.

    Raises:
        Refusal: 403 without the scope, 404 without a ledger, 400 for parameters that make no
            sense, 503 when the ledger cannot be read.
    """
    caller.require("usage")
    if books is None:
        raise refusal("not_found", "There is no ledger here, so nothing is counted.")
    try:
        query = usage_query(parameters, today_utc(now_s))
    except ValueError as error:
        raise refusal("bad_request", f"{error}.") from None
    if "admin" not in caller.scopes:
        query = replace(query, key_id=caller.key_id)
    try:
        return await books.read(lambda store: report(store, query, CURRENCY))
    except StoreError as error:
        raise Refusal(unwritable()) from error
