"""What budgets may have used at most, however limits change: told by a test, beside the ledger."""

from dataclasses import replace

from gateway.ledger.calendar import Calendar
from policies.limits import UNITS, WINDOWS, Unit, Window
from tests.gateway.metered import Accounts

_SPENT = "SELECT day_s, tokens, escalations, nanos FROM balances WHERE key_id = ?"
_Place = tuple[str, Unit, Window, int]


class Allowed:
    """The most of each unit in each window that anybody has asked in."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._calendar = Calendar()
        self._most: dict[_Place, int | None] = {}

    def asked(self, key: str) -> None:
        """A request begins: whatever may be used now may have been used at the end."""
        for place in self._places(key):
            limit, before = self._limit(place), self._most.get(place, 0)
            self._most[place] = None if limit is None or before is None else max(limit, before)

    def change(self, key: str, factor: float) -> None:
        """Budgets are another from now on; what is in flight may still use what it was granted."""
        accounts = self._accounts
        before = accounts.limits[key]
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

    def room(self, key: str) -> int | None:
        """Tokens that the key's budgets have left now, beside what is held; `None` = no budget."""
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
