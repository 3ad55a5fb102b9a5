"""Something else happens while a request is answered: it costs what was held for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.gateway.metered import Accounts


@pytest.fixture(params=[True, False], ids=["group", "async"])
async def accounts(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Accounts]:
    opened = Accounts(str(tmp_path / "ledger.db"), durable=request.param)
    clock = SimpleNamespace(time=lambda: opened.now_s, monotonic=lambda: 1000.0)
    for module in ("metering", "advance"):
        monkeypatch.setattr(f"gateway.{module}.time", clock)
    yield opened
    opened.store.gate.set()
    opened.close()


async def read_whole(accounts: Accounts) -> None:
    """All that are in flight take what they may take at most."""
    for one in accounts.flying:
        one.go.set_result((1.0, True))
    await accounts.pause()
    for one in accounts.landed():
        assert one.task is not None
        await one.task


async def test_no_large_text_stays_in_memory_until_its_charge_is_written(
    accounts: Accounts,
) -> None:
    accounts.store.gate.clear()
    busy = asyncio.create_task(accounts.written())
    await accounts.pause()
    for text in ("small", "large" * 20_000):
        one = await accounts.ask("free", text)
        one.go.set_result((0.1, True))
        await accounts.pause()

        kept = [order.inquiry.state for order, _, _ in accounts.metering._tab._entries]
        assert kept == ([text] if text == "small" else [])
    accounts.store.gate.set()
    await busy
    await accounts.written()

    assert accounts.rows("SELECT count(*) FROM charges") == [(2,)]


@pytest.mark.parametrize("before", [0, 1], ids=["the first of a block", "within a block"])
async def test_prices_that_change_meanwhile_are_for_the_next(
    accounts: Accounts, before: int
) -> None:
    for _ in range(before):
        await accounts.ask("money", "a")
        await read_whole(accounts)
    await accounts.ask("money", "b")
    old = accounts.prices()

    accounts.million_tokens *= 10
    accounts.metering.reprice(accounts.prices())
    await read_whole(accounts)
    await accounts.ask("money", "b")
    await read_whole(accounts)
    await accounts.written()

    *_, (cheap, version), (dear, _) = accounts.rows(
        "SELECT nanos, price_version FROM charges ORDER BY charge_id"
    )
    assert version == old.version
    assert dear > 5 * cheap
