"""Days and months: leap years, month ends, clock changes, clocks that jump."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ledger.calendar import Calendar

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
_2001_S, _2099_S = 978_307_200, 4_070_908_800


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("moment", "zone", "day", "month_end"),
    [
        ("2026-11-30 23:59:59", "UTC", "2026-11-30", "2026-12-01"),
        ("2026-12-31 12:00:00", "UTC", "2026-12-31", "2027-01-01"),
        ("2028-02-29 00:00:00", "UTC", "2028-02-29", "2028-03-01"),
        ("2027-02-28 00:00:00", "UTC", "2027-02-28", "2027-03-01"),
        ("2026-03-29 12:00:00", "Europe/Berlin", "2026-03-29", "2026-04-01"),
        ("2026-10-25 12:00:00", "Europe/Berlin", "2026-10-25", "2026-11-01"),
    ],
)
def test_windows_follow_the_calendar(moment: str, zone: str, day: str, month_end: str) -> None:
    found = Calendar(zone).windows(at(moment, zone))

    assert found.day_s == at(day, zone)
    assert found.month_s == at(day[:8] + "01", zone)
    assert found.month_end_s == at(month_end, zone)
    assert found.end_s("month") == found.month_end_s


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_day_with_a_clock_change_is_shorter_or_longer(day: str, hours: int) -> None:
    found = Calendar("Europe/Berlin").windows(at(f"{day} 12:00", "Europe/Berlin"))

    assert found.day_end_s - found.day_s == hours * 3600


@settings(deadline=None)
@given(st.lists(st.integers(_2001_S, _2099_S), min_size=1), st.sampled_from(ZONES))
def test_wherever_the_clock_jumps_it_stands_in_its_day_and_month(
    jumps: list[int], zone: str
) -> None:
    calendar = Calendar(zone)
    for now_s in jumps:
        found = calendar.windows(now_s)
        assert found.day_s <= now_s < found.day_end_s
        assert found.month_s <= found.day_s < found.day_end_s <= found.month_end_s
        assert found == Calendar(zone).windows(now_s)
        local = datetime.fromtimestamp(found.day_s, ZoneInfo(zone) if zone != "UTC" else UTC)
        assert (local.hour, local.minute) == (0, 0)


@pytest.mark.parametrize("name", ["Mars/Phobos", "../etc", ""])
def test_an_unknown_timezone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="timezone"):
        Calendar(name)
