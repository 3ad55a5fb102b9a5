"""What budgets may have used at most, however limits change: told by a test, beside the ledger."""

from collections import Counter
from dataclasses import replace

from gateway.errors import Refusal
from gateway.ledger.calendar import Calendar
from policies.limits import UNITS, WINDOWS, Unit, Window
from tests.gateway.metered import LIMITS, Accounts, Asking

_SPENT = "SELECT day_s, tokens, escalations, nanos FROM balances WHERE key_id = ?"
_Place = tuple[str, Unit, Window, int]


class Allowed:
    """The most of each unit in each window that anybody has asked in."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._calendar = Calendar()
        self._most: dict[_Place, int | None] = {}
        self._answered_s: dict[tuple[str, bytes], float] = {}

    def asked(self, key: str) -> None:
        """A request begins: whatever may be used now may have been used at the end."""
        for place in self._places(key):
            limit, before = self._limit(place), self._most.get(place, 0)
            self._most[place] = None if limit is None or before is None else max(limit, before)

    def change(self, key: str, factor: float) -> None:
        """Budgets are so much of the usual ones from now on.

        What is in flight may still use what it was granted.
        """
        accounts = self._accounts
        before = LIMITS[key]
        budgets = {f"{unit}_per_{window}" for unit in UNITS for window in WINDOWS}
        changes = {
            name: round(limit * factor)
            for name in budgets
            if (limit := getattr(before, name)) is not None
        }
        accounts.limits[key] = replace(before, **changes)
        accounts.callers[key] = accounts.caller(key)
        flying = [one.granted for one in accounts.flying if one.key == key]
        for place in self._places(key):
            _, unit, window, begin_s = place
            limit = self._limit(place)
            if limit is not None and place in self._most:
                held = sum(getattr(amounts, unit) for amounts in flying)
                self._most[place] = max(limit, self._used(key, unit, window, begin_s) + held)

    def check(self) -> None:
        """Nothing is overspent."""
        for place, most in self._most.items():
            assert most is None or self._used(*place) <= most, place

    def check_held(self) -> None:
        """Whatever is being read for somebody with a budget has room in the ledger."""
        accounts = self._accounts
        sql = "SELECT key_id, SUM(tokens) FROM leases WHERE expires_s > ? GROUP BY 1"
        held = dict(accounts.rows(sql, accounts.now_s))
        reading: Counter[str] = Counter()
        for one in accounts.flying:
            if one.begun and not one.go.done() and one.order.caller.budgeted:
                reading[one.key] += one.granted.tokens
        for key, tokens in reading.items():
            assert tokens <= held.get(key, 0), "nothing is held for it"

    def check_charges(self) -> None:
        """Nobody pays more than he was granted, or by other prices."""
        rows = self._accounts.rows("SELECT request_id, price_version, tokens, nanos FROM charges")
        for number, version, tokens, nanos in rows:
            one = self._accounts.sent[number]
            assert version in one.versions
            assert tokens <= one.granted.tokens
            assert nanos <= one.granted.nanos or not one.granted.nanos

    def check_granted(self, one: Asking) -> None:
        """What has just begun fits beside what is used and whatever else is being read."""
        if not one.begun:
            return
        reading = [o.granted for o in self._accounts.flying if o.begun and o.key == one.key]
        for place in self._places(one.key):
            limit, unit = self._limit(place), place[1]
            if limit is not None and unit != "escalations":
                held = sum(getattr(amounts, unit) for amounts in reading)
                assert self._used(*place) + held <= limit, place

    def check_once(self, one: Asking) -> None:
        """Nobody answers an Idempotency-Key twice within a day; told of each answer."""
        header = one.order.idempotency_key
        if header is not None:
            before_s = self._answered_s.get((one.key, header))
            assert before_s is None or one.now_s >= before_s + 86_400.0, "answered twice"
            self._answered_s[one.key, header] = one.now_s

    def check_refused(self, one: Asking) -> None:
        """A budget of tokens refuses what does not fit beside all that is in flight.

        Not where another gateway holds a block.
        """
        if one.task is None or not one.task.done() or one.task.cancelled():
            return
        error, accounts = one.task.exception(), self._accounts
        if not isinstance(error, Refusal) or "budget tokens" not in error.problem.message:
            return
        if len(accounts.desks) == 1:
            others = [o for o in accounts.flying if o.key == one.key and o is not one]
            room = self._room(one.key)
            assert room is not None
            assert sum(o.rough for o in others) + one.granted.tokens > room, "it would fit"

    def _room(self, key: str) -> int | None:
        """Tokens that the key's budgets have left, beside what is held; `None` = no budget."""
        left = [
            limit - self._used(*place)
            for place in self._places(key)
            if place[1] == "tokens" and (limit := self._limit(place)) is not None
        ]
        return min(left, default=None)

    def _places(self, key: str) -> list[_Place]:
        windows = self._calendar.windows(self._accounts.now_s)
        begins: dict[Window, int] = {"day": windows.day_s, "month": windows.month_s}
        return [(key, unit, window, begins[window]) for unit in UNITS for window in WINDOWS]

    def _limit(self, place: _Place) -> int | None:
        return self._accounts.limits[place[0]].budget(place[1], place[2])

    def _used(self, key: str, unit: Unit, window: Window, begin_s: int) -> int:
        windows = self._calendar.windows(begin_s)
        rows = self._accounts.rows(_SPENT, key)
        at = 1 + UNITS.index(unit)
        return sum(row[at] for row in rows if begin_s <= row[0] < windows.end_s(window))
