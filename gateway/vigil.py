"""What a watching gateway does beside answering: it weighs opinions, raises and obeys alarms."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from gateway.drifting import Drifted, drifted
from gateway.ledger.books import Books
from gateway.ledger.calendar import Calendar
from gateway.ledger.decisions import Alarm, Period
from gateway.ledger.store import Charge, ChargedStep, Store, StoreError, Unfit
from gateway.plan import Plan
from gateway.second_opinions import Figures, Given
from gateway.trials import TrialTerms, weighed
from policies.drift import Drift
from policies.pricing import PriceList

_LOG = logging.getLogger("tiergate")

WATCH_KEY = "tiergate/watch"
"""Whom second opinions are charged to."""

_DAY_S = 86_400.0
_COMPARED = 5000
"""Latest decisions of either period that are compared."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """What second opinions are charged by."""

    prices: PriceList
    calendar: Calendar


class Vigil:
    """Confined to the event loop."""

    def __init__(
        self,
        books: Books,
        plans: Collection[Plan],
        terms: TrialTerms,
        accounts: Accounts,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.alarms: tuple[Alarm, ...] = ()
        """Those that hold, as last read."""
        self.figures = Figures()
        """What came of second opinions."""
        self._books = books
        self._plans = plans
        self._terms = terms
        self._accounts = accounts
        self._clock = clock

    def watch(self, plans: Collection[Plan], terms: TrialTerms, accounts: Accounts) -> None:
        """From now on look after these plans and no others, by these terms and prices.

        Alarms hold for them too, as they were last read.
        """
        self._plans = plans
        self._terms = terms
        self._accounts = accounts
        self._demote()

    async def took(self, given: Given) -> None:
        """Keep what another engine read, charge it, and do what its evidence demands."""
        at_s = self._clock()
        charge = _charge(given, self._accounts.prices, at_s)
        day_s = self._accounts.calendar.windows(at_s).day_s

        def keep(store: Store) -> list[Alarm]:
            if charge.tokens:
                store.charge(charge, day_s)
            found = (
                weighed(store, one, given.glances[name], self._terms, at_s)
                for name, one in given.opinion.wanted.items()
            )
            return [alarm for alarm in found if alarm is not None]

        try:
            raised = await self._books.writer.submit(keep)
            for alarm in raised:
                _LOG.error("alarm: %s", alarm.message)
            if raised:
                self.obey()
        except (StoreError, Unfit) as error:
            _LOG.warning("watching: %s", error)

    def obey(self) -> None:
        """Demote what alarms are about, and nothing else. Takes microseconds.

        Raises:
            StoreError: the ledger cannot be read; everything stays as it is.
        """
        self.alarms = tuple(self._books.source.alarms())
        self._demote()

    def _demote(self) -> None:
        demoted: dict[str, frozenset[str]] = {}
        for alarm in self.alarms:
            if alarm.kind == "disagreement":
                demoted[alarm.engine] = demoted.get(alarm.engine, frozenset()) | {alarm.what}
        for plan in self._plans:
            plan.demote_exactly(demoted)

    async def meet(self, digests: Mapping[str, str]) -> None:
        """Note which engines answer; an alarm for each that is not the one of last time.

        Raises:
            StoreError: the ledger cannot be written.
        """
        at_s = self._clock()

        def keep(store: Store) -> list[Alarm]:
            changed = [
                (engine, digest)
                for engine, digest in digests.items()
                if store.engine_seen(engine, digest, at_s) is not None
            ]
            alarms = [
                Alarm("model_changed", engine, digest[:16], _CHANGED.format(engine), at_s)
                for engine, digest in changed
            ]
            return [alarm for alarm in alarms if store.raise_alarm(alarm)]

        for alarm in await self._books.writer.submit(keep):
            _LOG.warning("alarm: %s", alarm.message)

    async def compare(self, current_s: float = _DAY_S) -> None:
        """Raise an alarm for everything that is not what it was before the last `current_s`.

        Raises:
            StoreError: the ledger cannot be used.
        """
        at_s = self._clock()
        since_s = at_s - current_s

        def read(store: Store) -> list[Alarm]:
            before = store.decisions(Period(until_s=since_s, latest=_COMPARED))
            now = store.decisions(Period(since_s, latest=_COMPARED))
            return [
                alarm
                for one in drifted(before, now, "cell")
                if one.changed
                for alarm in _alarms_of(one, at_s)
            ]

        found = await self._books.read(read)

        def keep(store: Store) -> list[Alarm]:
            return [alarm for alarm in found if store.raise_alarm(alarm)]

        if found:
            for alarm in await self._books.writer.submit(keep):
                _LOG.warning("alarm: %s", alarm.message)


async def repeated(every_s: float, chore: Callable[[], object]) -> None:
    """Do a chore every so often, until cancelled. A ledger that cannot be used ends no chore."""
    while True:
        await asyncio.sleep(every_s)
        try:
            done = chore()
            if asyncio.iscoroutine(done):
                await done
        except StoreError as error:
            _LOG.warning("watching: %s", error)


_CHANGED = (
    "{} has other weights, another tokenizer or another encoding than last time; "
    "what was measured about it does not hold any more."
)


def _alarms_of(one: Drifted, at_s: float) -> list[Alarm]:
    """An alarm for each measure that says that this is another population."""
    return [
        Alarm("drift", one.engine, f"{one.what} {name}", _drift(one, name, index), at_s)
        for name, index in (("likelihood", one.likelihood), ("escalation", one.escalation))
        if index.verdict == "changed"
    ]


def _drift(one: Drifted, name: str, index: Drift) -> str:
    measured = "likelihoods" if name == "likelihood" else "escalation share"
    return (
        f"The {measured} of {one.engine} on {one.what} changed within a day: "
        f"PSI {index.psi:.2f}, {index.by_chance:.2f} by chance."
    )


def _charge(given: Given, prices: PriceList, at_s: float) -> Charge:
    """Second opinions have questions of no caller, so that none is counted twice."""
    opinion, busy_us = given.opinion, round(given.spent_s * 1e6)
    tariff = prices.tariff(opinion.tier.name, at_s)
    nanos = None if tariff is None else tariff.cost(given.tokens, busy_us)
    return Charge(
        at_s=at_s,
        key_id=WATCH_KEY,
        request_id=opinion.request_id,
        model_asked=None,
        model_served=opinion.model,
        steps=(ChargedStep(opinion.tier.name, given.tokens, busy_us, nanos),),
        nouls=0,
        choices=0,
        scores=0,
        status=200,
        nanos=nanos,
        price_version=None if nanos is None else prices.version,
    )
