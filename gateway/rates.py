"""How fast each key may ask: the state of its rates in this process, and the headers about it.

Rates are kept in memory: two processes on one ledger allow twice the rate, and a restart begins
anew. Budgets are exact; see the ledger.
"""

import math

from gateway.auth import Caller
from gateway.errors import Problem, Refusal
from policies.limits import Pace, arrival_after, paced, refunded

_MINUTE_S = 60.0


class Rates:
    """GCRA for requests and for tokens, per key. Confined to the event loop."""

    def __init__(self) -> None:
        self._requests: dict[str, float] = {}
        self._tokens: dict[str, float] = {}

    def admit(self, caller: Caller, now_s: float) -> None:
        """Count one request.

        Raises:
            Refusal: 429 when it comes too early.
        """
        limit = caller.limits.rpm
        if limit is None:
            return
        key_id = caller.key_id
        before_s = self._requests.get(key_id, 0.0)
        after_s = arrival_after(before_s, now_s, limit)
        if after_s is None:
            raise _too_fast("rpm", "requests", limit, paced(before_s, now_s, limit))
        self._requests[key_id] = after_s

    def take_tokens(self, caller: Caller, tokens: int, now_s: float) -> None:
        """Count an upper bound of tokens.

        Raises:
            Refusal: 429 when they come too early; a request for more than a minute's worth has
                to wait until nothing is used up.
        """
        limit = caller.limits.tpm
        if limit is None:
            return
        key_id = caller.key_id
        before_s = self._tokens.get(key_id, 0.0)
        after_s = arrival_after(before_s, now_s, limit, tokens)
        if after_s is None:
            raise _too_fast("tpm", "tokens", limit, paced(before_s, now_s, limit, tokens))
        self._tokens[key_id] = after_s

    def give_back(self, caller: Caller, tokens: int) -> None:
        """Of the tokens taken, these were not read."""
        limit = caller.limits.tpm
        if limit and caller.key_id in self._tokens:
            self._tokens[caller.key_id] = refunded(self._tokens[caller.key_id], limit, tokens)


def _too_fast(name: str, unit: str, limit: int, pace: Pace) -> Refusal:
    said = f"This API key may use {limit} {unit} a minute"
    wait_s, full_s = pace.wait_s, pace.full_s
    if math.isinf(wait_s):  # 0 a minute: until somebody allows more
        wait_s = full_s = _MINUTE_S
    else:
        said = f"{said}; try again in {math.ceil(10 * wait_s) / 10:.1f} s"
    return Refusal(
        Problem(
            "rate_limited",
            f"{said}.",
            details={"limit": name, "allowed": limit},
            retry_after_s=wait_s,
            headers=_headers(limit, pace.remaining, full_s),
        )
    )


def _headers(limit: int, remaining: int, full_s: float) -> dict[str, str]:
    """As in draft-ietf-httpapi-ratelimit-headers-06; reset = seconds until all is back."""
    return {
        "ratelimit-limit": str(limit),
        "ratelimit-remaining": str(remaining),
        "ratelimit-reset": str(math.ceil(full_s)),
    }
