"""Blocks of several processes on one ledger: whatever the order, the budget holds."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Admission, Claim, Held, Settlement, admit, settle
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep, Store
from policies.limits import NOTHING, Amounts, Exhausted, Limits

BEGIN_S = 1_796_000_000.0
LEASE_S, LONGEST_S = 60.0, 8.0
LIMIT = 2_400
LIMITS = Limits(tokens_per_day=LIMIT)
WINDOWS = Calendar().windows(BEGIN_S)
WANTED = st.sampled_from([1, 1, 2, 300])


class Process:
    """A gateway's blocks and a writer that writes when it is told to."""

    def __init__(self, path: str) -> None:
        self.store = SqliteStore(path)
        self.begin()

    def begin(self) -> None:
        """As after a crash: what was not written is lost."""
        self.queue: list[Callable[[Store], Any]] = []
        self.blocks = Blocks(self, LONGEST_S)  # type: ignore[arg-type]
        self.flying: list[tuple[Block, Admission]] = []

    def post(self, work: Callable[[Store], Any]) -> None:
        self.queue.append(work)

    def write(self) -> None:
        queue, self.queue = self.queue, []
        with self.store.transaction():
            for work in queue:
                work(self.store)

    def ask(self, asked: Admission) -> object:
        """What the store says, after everything that was posted before."""
        self.write()
        with self.store.transaction():
            return admit(self.store, asked)


def took(process: Process, asked: Admission) -> Block | None:
    """The block that holds room for what is asked."""
    assert asked.claim is not None
    return process.blocks.take(asked.key_id, asked.claim.limits, asked.claim.amounts, asked.now_s)


class Interleaved(RuleBasedStateMachine):
    """Processes that take, give back, write, idle and die in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.processes: list[Process] = []
        self.now_s = BEGIN_S
        self.leases = 0
        self.used = 0
        self.died = False

    @initialize(several=st.booleans())
    def begin(self, several: bool) -> None:
        path = str(self.folder / "ledger.db")
        self.processes = [Process(path) for _ in range(1 + several)]

    def one(self, number: int) -> Process:
        return self.processes[number % len(self.processes)]

    @rule(number=st.integers(0, 1), tokens=WANTED, times=st.sampled_from([1, 3, 40]))
    def take(self, number: int, tokens: int, times: int) -> None:
        for _ in range(times):
            self.taken(self.one(number), tokens)

    @rule(number=st.integers(0, 1))
    def fill(self, number: int) -> None:
        """Take what is left, so that nothing but blocks has room."""
        for halvings in range(11):
            self.taken(self.one(number), 1024 >> halvings)

    def taken(self, process: Process, tokens: int) -> None:
        self.leases += 1
        claim = Claim(LIMITS, Amounts(tokens), WINDOWS)
        asked = Admission(self.leases, "k", self.now_s, LEASE_S, claim)
        block = took(process, asked)
        if block is None:
            found = process.ask(asked)
            if isinstance(found, Exhausted) and process.blocks.retire("k") is not None:
                found = process.ask(asked)
            if not isinstance(found, Held):
                if len(self.processes) == 1 and not self.died:
                    assert self.used + self.bounds() + tokens > LIMIT, "refused although it fits"
                return
            block = process.blocks.add(asked, found)
        process.flying.append((block, asked))

    @rule(number=st.integers(0, 1), at=st.integers(0, 30), share=st.floats(0, 1))
    def back(self, number: int, at: int, share: float) -> None:
        process = self.one(number)
        if process.flying:
            self.returned(process, at % len(process.flying), share)

    def returned(self, process: Process, at: int, share: float) -> None:
        block, asked = process.flying.pop(at)
        assert asked.claim is not None
        tokens = round(asked.claim.amounts.tokens * share)
        left = process.blocks.back(block, asked.claim.amounts, tokens, 0)
        steps = (ChargedStep("engine", tokens, 1),)
        charge = Charge(self.now_s, "k", "r", None, "m", steps, 1, 0, 0, 200)
        lease_id = None if left is None else block.asked.lease_id
        done = Settlement(asked, charge.row, WINDOWS.day_s, None, lease_id, left or NOTHING)
        process.post(lambda store: settle(store, done))
        self.used += tokens

    @rule(number=st.integers(0, 1))
    def write(self, number: int) -> None:
        self.one(number).write()

    @rule(number=st.integers(0, 1))
    def idle(self, number: int) -> None:
        self.one(number).blocks.retire_idle(self.now_s)

    @rule(seconds=st.sampled_from([0.5, 2.0, 20.0, 50.0]))
    def pass_time(self, seconds: float) -> None:
        """Whoever would be late comes back first: a request takes at most `LONGEST_S`."""
        for process in self.processes:
            for at in reversed(range(len(process.flying))):
                if self.now_s + seconds - process.flying[at][1].now_s > LONGEST_S:
                    self.returned(process, at, 1.0)
            process.write()
        self.now_s += seconds

    @precondition(lambda self: len(self.processes) > 1)
    @rule(number=st.integers(0, 1))
    def die(self, number: int) -> None:
        """What flew is gone; what was not written never counts, and its lease expires."""
        process = self.one(number)
        process.write()
        process.begin()
        self.died = True

    def bounds(self) -> int:
        return sum(
            asked.claim.amounts.tokens
            for process in self.processes
            for _, asked in process.flying
            if asked.claim is not None
        )

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.used + self.bounds() <= LIMIT

    def teardown(self) -> None:
        for process in self.processes:
            while process.flying:
                self.returned(process, 0, 0.5)
            process.blocks.retire_idle(self.now_s + 60)
            process.write()
        if self.processes and not self.died:
            held = self.processes[0].store.leased("k", 0.0, float("inf"))
            assert held == Amounts(), "something stays held"
        if self.processes:
            assert self.processes[0].store.spent("k", WINDOWS)[0] == Amounts(self.used)
        for process in self.processes:
            process.store.close()
        shutil.rmtree(self.folder)


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    opened = Process(str(tmp_path / "ledger.db"))
    yield opened
    opened.store.close()


def asked_for(tokens: int, lease_id: int = 1, now_s: float = BEGIN_S) -> Admission:
    return Admission(lease_id, "k", now_s, LEASE_S, Claim(LIMITS, Amounts(tokens), WINDOWS))


def begun(process: Process, tokens: int = 1) -> Block:
    """A block that the store granted, with one request of `tokens` in flight."""
    asked = asked_for(tokens)
    held = process.ask(asked)
    assert isinstance(held, Held)
    return process.blocks.add(asked, held)


def leased(process: Process) -> int:
    process.write()
    return process.store.leased("k", 0.0, float("inf")).tokens


def test_a_block_gives_what_it_holds_and_no_more(process: Process) -> None:
    block = begun(process)
    free = leased(process) - 1
    assert free >= 16

    for number in range(free):
        assert took(process, asked_for(1, 2 + number)) is block

    assert took(process, asked_for(1)) is None


def test_what_was_not_used_can_be_taken_again_and_what_was_used_cannot(process: Process) -> None:
    block = begun(process)
    free = block.tokens
    assert took(process, asked_for(10)) is block

    assert not process.blocks.back(block, Amounts(10), 4, 0)

    assert block.tokens == free - 4


def test_where_money_is_not_limited_what_work_cost_keeps_nobody_out(process: Process) -> None:
    block = begun(process)

    process.blocks.back(block, Amounts(1), 1, 42)

    assert took(process, asked_for(1)) is block
    assert block.in_flight() == Amounts(1)


def test_nobody_takes_what_could_expire_before_they_are_back(process: Process) -> None:
    begun(process)
    last_s = BEGIN_S + LEASE_S - 2 * LONGEST_S

    assert took(process, asked_for(1, now_s=last_s - 0.01)) is not None
    assert took(process, asked_for(1, now_s=last_s)) is None


def test_a_clock_that_goes_back_ends_a_block(process: Process) -> None:
    begun(process)

    assert took(process, asked_for(1, now_s=BEGIN_S - 1)) is None
    assert took(process, asked_for(1)) is None


def test_a_retired_block_holds_what_is_in_flight_and_ends_with_the_last(process: Process) -> None:
    block = begun(process)
    assert took(process, asked_for(2, 2)) is block

    assert process.blocks.retire("k") is block
    assert leased(process) == 3
    assert process.blocks.back(block, Amounts(1), 1, 0) == Amounts(2)
    assert process.blocks.back(block, Amounts(2), 2, 0) == NOTHING


def test_an_idle_block_is_given_up_after_a_second(process: Process) -> None:
    block = begun(process)
    process.blocks.back(block, Amounts(1), 1, 0)

    process.blocks.retire_idle(BEGIN_S + 0.9)
    assert leased(process) > 1
    process.blocks.retire_idle(BEGIN_S + 1.0)
    assert leased(process) == 0


def test_what_comes_back_unused_to_a_block_that_is_given_up_has_room_for_others() -> None:
    machine = Interleaved()
    machine.begin(several=False)
    machine.fill(number=0)
    machine.fill(number=0)
    while machine.used + machine.bounds() < LIMIT:
        machine.fill(number=0)

    machine.back(number=0, at=0, share=0.0)
    machine.fill(number=0)

    assert machine.used + machine.bounds() == LIMIT
    machine.teardown()
