"""Work that goes on beside the answering."""

import asyncio

import pytest

from gateway.chores import chores


async def test_work_goes_on_as_long_as_the_block_lasts_and_is_over_behind_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = []

    async def endless() -> None:
        told.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            told.append("over")

    async with chores(endless(), endless()):
        await asyncio.sleep(0)
        assert told == ["begun"] * 2

    assert told == ["begun"] * 2 + ["over"] * 2
    assert caplog.records == []


async def test_work_that_breaks_is_told_and_takes_nothing_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    over = []

    async def breaks() -> None:
        raise ValueError("no such thing")

    async def endless() -> None:
        await asyncio.Event().wait()
        over.append(True)

    async with chores(breaks(), endless()):
        while not caplog.records:
            await asyncio.sleep(0)

    (record,) = caplog.records
    assert "breaks' has ended, until the next start" in record.getMessage()
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no such thing"
    assert over == []
