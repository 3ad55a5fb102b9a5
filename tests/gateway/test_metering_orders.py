"""Whatever ends in whatever order: charges are what was read, and no budget is overspent."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engines.contract import EngineError
from gateway.errors import Refusal
from policies.limits import UNITS
from tests.gateway.metered import LIMITS, LONGEST_S, Accounts

T = TypeVar("T")

KEYS = st.sampled_from(sorted(LIMITS))
TEXTS = st.sampled_from(["a", "b", "w" * 2500, "w" * 2500])
LEDGERS = st.sampled_from([*["well"] * 5, "stuck", "broken"])
SHARES = st.sampled_from([0.0, 0.2, 0.6, 1.0])


class Orders(RuleBasedStateMachine):
    """Requests that begin, end, fail, leave, and a ledger that sticks and breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.state = "well"
        self.runner = asyncio.Runner()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr("gateway.ledger.writer._STUCK_S", 1e9)
        clock = SimpleNamespace(time=lambda: self.accounts.now_s, monotonic=lambda: 1000.0)
        for module in ("metering", "advance"):
            self.patches.setattr(f"gateway.{module}.time", clock)

    @initialize(durable=st.booleans())
    def begin(self, durable: bool) -> None:
        async def opened() -> Accounts:
            return Accounts(str(self.folder / "ledger.db"), durable=durable)

        self.accounts = self.run(opened())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def settled(self) -> None:
        """Look at those that have ended."""
        for one in self.accounts.landed():
            assert one.task is not None
            if one.task.cancelled():
                continue
            error = one.task.exception()
            assert error is None or isinstance(error, Refusal | EngineError), error

    @rule(
        key=KEYS,
        text=TEXTS,
        once=st.sampled_from([None, None, None, b"x", b"y"]),
        retried=st.booleans(),
        times=st.sampled_from([1, 1, 1, 20]),
        ledger=LEDGERS,
    )
    def ask(self, ledger: str, times: int, key: str, text: str, **more: Any) -> None:
        self.is_now(ledger)
        for number in range(1 if more["once"] else times):
            said = f"{'' if number % 10 == 0 else text}{number}" if times > 1 else text
            self.run(self.accounts.ask(key, said, **more))
        self.settled()

    @rule(
        at=st.integers(0, 50), several=st.sampled_from([1, 1, 9, 70]), share=SHARES, ledger=LEDGERS
    )
    def come_back(self, at: int, several: int, share: float, ledger: str) -> None:
        self.is_now(ledger)

        async def some() -> None:
            waiting = [one for one in self.accounts.flying if not one.go.done()]
            for one in waiting[at % (len(waiting) or 1) :][:several]:
                one.go.set_result((share, share > 0))
            await self.accounts.pause()

        self.run(some())
        self.settled()

    @rule(key=KEYS, text=TEXTS, times=st.sampled_from([1, 7, 70]), share=SHARES, ledger=LEDGERS)
    def serve(self, key: str, text: str, times: int, share: float, ledger: str) -> None:
        """So many at once, and all of them are read."""
        self.ask("well", times, key, text, once=None, retried=False)
        self.come_back(0, 1000, share, ledger)

    @rule(at=st.integers(0, 50), share=SHARES, ticks=st.integers(0, 4), ledger=LEDGERS)
    def leave(self, at: int, share: float, ticks: int, ledger: str) -> None:
        """Perhaps just when the answer is there."""
        self.is_now(ledger)

        async def one_left() -> None:
            if not self.accounts.flying:
                return
            one = self.accounts.flying[at % len(self.accounts.flying)]
            if not one.go.done() and share:
                one.go.set_result((share, True))
            for _ in range(ticks):
                await asyncio.sleep(0)
            assert one.task is not None
            one.task.cancel()
            await self.accounts.pause()

        self.run(one_left())
        self.settled()

    def is_now(self, ledger: str) -> None:
        """The ledger is `well`, `stuck` in a transaction, or `broken`."""
        store, was = self.accounts.store, self.state
        self.state, store.broken = ledger, ledger == "broken"
        if ledger == "stuck":
            store.gate.clear()
        else:
            store.gate.set()
        if ledger == "well" and was != "well":
            self.run(self.accounts.written())
        self.settled()

    @rule()
    def idle(self) -> None:
        async def retire() -> None:
            self.accounts.metering.retire_idle()

        self.run(retire())

    @rule(key=KEYS)
    def change_keys(self, key: str) -> None:
        self.accounts.callers[key] = self.accounts.caller(key)

    @rule()
    def make_cheaper(self) -> None:
        async def reprice() -> None:
            self.accounts.million_tokens = self.accounts.million_tokens * 3 // 4
            self.accounts.metering.reprice(self.accounts.prices())

        self.run(reprice())

    @rule(seconds=st.sampled_from([-0.5, 0.5, 2.0, 40.0, 86_400.0]))
    def pass_time(self, seconds: float) -> None:
        """Whoever would be late leaves first."""

        async def passed() -> None:
            accounts = self.accounts
            for one in accounts.flying:
                if accounts.now_s + seconds - one.now_s > LONGEST_S and one.task is not None:
                    one.task.cancel()
            await accounts.pause()
            accounts.now_s += seconds

        if seconds > LONGEST_S:
            self.is_now("well")
            self.run(self.accounts.written())
        self.run(passed())
        self.settled()

    @rule()
    def look(self) -> None:
        self.is_now("well")
        self.run(self.accounts.written())
        self.settled()
        rows = self.accounts.rows
        sums = rows("SELECT key_id, SUM(tokens) FROM charges GROUP BY 1")
        days = rows(
            "SELECT key_id, SUM(tokens), SUM(escalations), SUM(nanos) FROM balances GROUP BY 1"
        )
        assert dict(sums) == {key: tokens for key, tokens, _, _ in days}
        if not self.accounts.flying:
            assert {key: n for key, n in sums if n} == +self.accounts.read
        told = {
            number: (key, tokens)
            for number, key, tokens in rows(
                "SELECT request_id, key_id, tokens FROM charges WHERE status = 200"
            )
        }
        assert self.accounts.answered.items() <= told.items()

    @invariant()
    def no_budget_is_overspent(self) -> None:
        if not hasattr(self, "accounts"):
            return
        sql = "SELECT key_id, tokens, escalations, nanos FROM balances"
        for key, *amounts in self.accounts.rows(sql):
            for unit, amount in zip(UNITS, amounts, strict=True):
                limit = LIMITS[key].budget(unit, "day")
                assert limit is None or amount <= limit, (key, unit)

    def teardown(self) -> None:
        if hasattr(self, "accounts"):
            self.run(self.ended())
        self.runner.close()
        self.patches.undo()
        shutil.rmtree(self.folder)

    async def ended(self) -> None:
        """Nothing is held any more, and the rates know of nothing but what was read."""
        accounts = self.accounts
        accounts.store.broken = False
        accounts.store.gate.set()
        await accounts.end()
        accounts.now_s += 2.0
        accounts.metering.retire_idle()
        await accounts.written()
        leases = accounts.rows(
            "SELECT key_id, tokens, nanos FROM leases WHERE expires_s > ?", accounts.now_s
        )
        assert leases == [], "something stays held"
        sums = accounts.rows("SELECT key_id, SUM(tokens) FROM charges GROUP BY 1")
        assert {key: n for key, n in sums if n} == +accounts.read
        for key, arrival_s in accounts.rates._tokens.items():
            tpm = LIMITS[key].tpm
            assert tpm is not None
            assert abs((arrival_s - 1000.0) * tpm / 60 - accounts.read[key]) < 1
        assert accounts.metering._flights._waiting == {}
        assert accounts.metering._tab.coming == 0
        accounts.writer.close()


TestOrders = Orders.TestCase
TestOrders.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
