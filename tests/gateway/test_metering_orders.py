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
from tests.gateway.allowed import Allowed
from tests.gateway.metered import LIMITS, LONGEST_S, Accounts

T = TypeVar("T")

KEYS = st.sampled_from(sorted(LIMITS))
TEXTS = st.sampled_from(["a", "b", "w" * 2500, "w" * 2500])
LEDGERS = st.sampled_from([*["well"] * 5, "stuck", "broken"])
SHARES = st.sampled_from([0.0, 0.2, 0.6, 1.0])
DESKS = st.sampled_from([0, 1])
BEGINS = st.sampled_from([1_795_996_820.0, 1_795_000_000.0])
"""Just after a midnight, a day before the end of a month; and in the middle of one."""


class Orders(RuleBasedStateMachine):
    """Requests that begin, end, fail, leave; ledgers that stick and break; settings that change."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.states = ["well", "well"]
        self.sent: list[tuple[str, str, bytes | None]] = []
        self.runner = asyncio.Runner()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr("gateway.ledger.writer._STUCK_S", 1e9)
        self.patches.setattr("gateway.admitting._PATIENCE_S", 0.0)
        clock = SimpleNamespace(time=lambda: self.accounts.now_s, monotonic=lambda: 1000.0)
        for module in ("metering", "advance"):
            self.patches.setattr(f"gateway.{module}.time", clock)

    @initialize(
        durable=st.booleans(), desks=st.sampled_from([1, 1, 2]), text=st.booleans(), now_s=BEGINS
    )
    def begin(self, durable: bool, desks: int, text: bool, now_s: float) -> None:
        async def opened() -> Accounts:
            return Accounts(
                str(self.folder / "ledger.db"),
                durable=durable,
                desks=desks,
                text_bytes=300 if text else 0,
                now_s=now_s,
            )

        self.accounts = self.run(opened())
        self.allowed = Allowed(self.accounts)

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
            if error is None and not one.task.result().replayed:
                self.allowed.check_once(one)

    @rule(
        key=KEYS,
        text=TEXTS,
        once=st.sampled_from([None, b"x", b"y"]),
        retried=st.booleans(),
        times=st.sampled_from([1, 1, 1, 20]),
        at=DESKS,
        ledger=LEDGERS,
    )
    def ask(self, ledger: str, times: int, key: str, text: str, **more: Any) -> None:
        self.is_now(ledger, more["at"])
        self.sent.append((key, text, more["once"]))
        self.allowed.asked(key)
        for number in range(1 if more["once"] else times):
            said = f"{'' if number % 10 == 0 else text}{number}" if times > 1 else text
            one = self.run(self.accounts.ask(key, said, **more))
            self.allowed.check_refused(one)
            self.allowed.check_granted(one)
        self.settled()

    @rule(number=st.integers(0, 50), retried=st.booleans(), at=DESKS, ledger=LEDGERS)
    def repeat(self, number: int, retried: bool, at: int, ledger: str) -> None:
        """Ask what was asked before; it is answered."""
        if self.sent:
            key, text, once = self.sent[number % len(self.sent)]
            self.ask("well", 1, key, text, once=once, retried=retried, at=at)
            self.come_back(0, 1000, 0.6, at, ledger)

    @rule(
        at=st.integers(0, 50),
        several=st.sampled_from([1, 1, 9, 70]),
        share=SHARES,
        desk=DESKS,
        ledger=LEDGERS,
    )
    def come_back(self, at: int, several: int, share: float, desk: int, ledger: str) -> None:
        self.is_now(ledger, desk)

        async def some() -> None:
            waiting = [one for one in self.accounts.flying if not one.go.done()]
            for one in waiting[at % (len(waiting) or 1) :][:several]:
                one.go.set_result((share, share > 0))
            await self.accounts.pause()

        self.run(some())
        self.settled()

    @rule(
        key=KEYS,
        text=TEXTS,
        once=st.sampled_from([None, b"x"]),
        times=st.sampled_from([1, 7, 70]),
        at=DESKS,
        share=SHARES,
        ledger=LEDGERS,
    )
    def serve(self, share: float, ledger: str, **asked: Any) -> None:
        """So many at once, and all of them are read."""
        self.ask("well", retried=False, **asked)
        self.come_back(0, 1000, share, asked["at"], ledger)

    @rule(at=st.integers(0, 50), share=SHARES, ticks=st.integers(0, 4), desk=DESKS, ledger=LEDGERS)
    def leave(self, at: int, share: float, ticks: int, desk: int, ledger: str) -> None:
        """Perhaps just when the answer is there."""
        self.is_now(ledger, desk)

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

    def is_now(self, ledger: str, at: int = 0) -> None:
        """The ledger of a desk is `well`, `stuck` before a transaction, or `broken`."""
        at %= len(self.accounts.desks)
        store, was = self.accounts.desks[at].store, self.states[at]
        self.states[at], store.broken = ledger, ledger == "broken"
        if ledger == "stuck":
            store.gate.clear()
        else:
            store.gate.set()
        if ledger == "well" and was != "well":
            self.run(self.accounts.written(at))
        self.settled()

    def all_well(self) -> None:
        """Every ledger is written."""
        for at in range(len(self.accounts.desks)):
            self.is_now("well", at)
            self.run(self.accounts.written(at))
        self.settled()

    @rule(desk=DESKS)
    def idle(self, desk: int) -> None:
        async def retire() -> None:
            self.accounts.desks[desk % len(self.accounts.desks)].metering.retire_idle()

        self.run(retire())

    @rule(key=KEYS)
    def change_keys(self, key: str) -> None:
        self.accounts.callers[key] = self.accounts.caller(key)

    @rule(key=KEYS, factor=st.sampled_from([0.0, 0.25, 1.0, 2.0]))
    def change_limits(self, key: str, factor: float) -> None:
        self.all_well()
        self.allowed.change(key, factor)

    @rule(factor=st.sampled_from([0.25, 0.75, 3.0]))
    def change_prices(self, factor: float) -> None:
        async def reprice() -> None:
            self.accounts.reprice(factor)

        self.run(reprice())

    @rule(at=DESKS)
    def restart(self, at: int) -> None:
        """Whoever is being answered there is cut off."""
        self.is_now("well", at)
        self.run(self.accounts.restart(at))
        self.settled()

    @rule(seconds=st.sampled_from([-50.0, -0.5, 2.0, 40.0, 70.0, 86_400.0]))
    def pass_time(self, seconds: float) -> None:
        """Whoever would be late leaves first."""

        async def passed() -> None:
            accounts = self.accounts
            for one in accounts.flying:
                if accounts.now_s + seconds - one.now_s > LONGEST_S and one.task is not None:
                    one.task.cancel()
            await accounts.pause()
            accounts.now_s += seconds

        if abs(seconds) > LONGEST_S:
            self.all_well()
        self.run(passed())
        self.settled()

    @rule(key=KEYS)
    def go_on_for_days(self, key: str) -> None:
        for _ in range(3):
            self.serve(1.0, "well", key=key, text="w" * 2500, once=None, times=7, at=0)
            self.pass_time(86_400.0)

    @rule()
    def look(self) -> None:
        self.all_well()
        rows = self.accounts.rows
        sums = rows("SELECT key_id, SUM(tokens) FROM charges GROUP BY 1")
        days = rows("SELECT key_id, SUM(tokens) FROM balances GROUP BY 1")
        assert dict(sums) == dict(days)
        self.allowed.check_held()
        self.allowed.check_charges()
        if not self.accounts.flying:
            assert {key: n for key, n in sums if n} == +self.accounts.read
        told = {
            number: (key, tokens)
            for number, key, tokens in rows(
                "SELECT request_id, key_id, tokens FROM charges WHERE status = 200"
            )
        }
        assert self.accounts.answered.items() <= told.items()
        texts = rows("SELECT status = 200, answered IS NOT NULL FROM kept_texts")
        assert len(texts) == (len(rows("SELECT 1 FROM charges")) if self.accounts.text_bytes else 0)
        assert all(answered == told for told, answered in texts)

    @invariant()
    def no_budget_is_overspent(self) -> None:
        if hasattr(self, "accounts"):
            self.allowed.check()

    def teardown(self) -> None:
        if hasattr(self, "accounts"):
            self.run(self.ended())
        self.runner.close()
        self.patches.undo()
        shutil.rmtree(self.folder)

    async def ended(self) -> None:
        """Nothing is held any more, and the rates know of nothing but what was read."""
        accounts = self.accounts
        await accounts.end()
        sums = accounts.rows("SELECT key_id, SUM(tokens) FROM charges GROUP BY 1")
        assert {key: n for key, n in sums if n} == +accounts.read
        for desk in accounts.desks:
            for key, arrival_s in desk.rates._tokens.items():
                tpm = LIMITS[key].tpm
                assert tpm is not None
                assert abs((arrival_s - 1000.0) * tpm / 60 - desk.paced[key]) < 1
            assert desk.metering._flights._waiting == {}
            assert desk.metering._tab.coming == 0
        accounts.now_s += 200.0  # more than any clock has gone back
        for desk in accounts.desks:
            desk.metering.retire_idle()
        await accounts.written()
        assert accounts.rows("SELECT * FROM leases") == [], "something stays held"
        self.allowed.check()
        accounts.close()


TestOrders = Orders.TestCase
TestOrders.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
