"""What is taken in advance: roughly where there is plenty of room, exactly before a refusal."""

from types import SimpleNamespace
from typing import Any

import pytest

from engines.contract import Inquiry, Noul
from gateway.advance import Advances, Work
from gateway.auth import Caller
from gateway.charging import Order, Terms
from gateway.errors import Refusal
from gateway.ledger.calendar import Calendar
from gateway.plan import Plan, Tier
from gateway.rates import Rates
from policies.limits import Limits
from policies.pricing import PriceList

NOW_S = 1_796_000_000.0
TPM = 1_000_000
TERMS = Terms(Calendar(), PriceList("USD", {}), "none")
CALLER = Caller("k", "k", limits=Limits(tpm=TPM))
SENT_BYTES = 100


class Silent:
    """A reader that is never asked."""

    name = "e"

    async def read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


class Bench:
    """Advances whose clock stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        still = SimpleNamespace(monotonic=lambda: 1000.0, time=lambda: NOW_S)
        monkeypatch.setattr("gateway.advance.time", still)
        self.rates = Rates()
        self.advances = Advances(None, self.rates, TERMS)  # type: ignore[arg-type] # no budgets
        self.order = Order(
            CALLER, "r", None, Plan("m", (Tier(Silent()),)), Inquiry("s", {"q": Noul("?")}), b""
        )

    def taken(self) -> int:
        """Tokens taken from the rate for a request."""
        work = Work(NOW_S, TERMS)
        self.advances.take(self.order, SENT_BYTES, work)
        return work.paced


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_a_rough_bound_does_while_a_minute_has_plenty_of_room(bench: Bench) -> None:
    assert SENT_BYTES < bench.taken() <= TPM // 256


def test_a_rate_without_room_for_a_rough_bound_is_asked_for_an_exact_one(bench: Bench) -> None:
    rough = bench.taken()
    bench.rates.give_back(CALLER, rough)
    bench.rates.take_tokens(CALLER, TPM - rough // 2, 1000.0)

    exact = bench.taken()

    assert 0 < exact < rough // 2


def test_before_a_rate_refuses_what_has_ended_comes_back(bench: Bench) -> None:
    bench.rates.take_tokens(CALLER, TPM, 1000.0)
    with pytest.raises(Refusal):
        bench.taken()

    bench.advances.returned = lambda: bench.rates.give_back(CALLER, TPM)

    assert bench.taken() > 0
