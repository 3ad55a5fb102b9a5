"""When days and months begin: UTC, or the timezone that the operator's bills follow."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policies.limits import Window


@dataclass(frozen=True, slots=True)
class Windows:
    """The day and the month around a moment; each from its begin to just before its end."""

    day_s: int
    day_end_s: int
    month_s: int
    month_end_s: int

    def end_s(self, window: Window) -> int:
        """When the window's budget is full again."""
        return self.day_end_s if window == "day" else self.month_end_s


class Calendar:
    """Windows by local midnights of one timezone; a day with a clock change has 23 or 25 hours."""

    def __init__(self, timezone: str = "UTC") -> None:
        """Raises: ValueError: no such timezone."""
        try:
            self._zone: tzinfo = UTC if timezone == "UTC" else ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no timezone '{timezone}'") from None
        self._last = Windows(0, 0, 0, 0)

    def windows(self, now_s: float) -> Windows:
        """The windows around `now_s`."""
        last = self._last
        if last.day_s <= now_s < last.day_end_s:
            return last
        today = datetime.fromtimestamp(now_s, self._zone).date()
        first = today.replace(day=1)
        next_first = (first + timedelta(days=32)).replace(day=1)
        days = (today, today + timedelta(days=1), first, next_first)
        found = Windows(
            *(int(datetime(d.year, d.month, d.day, tzinfo=self._zone).timestamp()) for d in days)
        )
        self._last = found
        return found
