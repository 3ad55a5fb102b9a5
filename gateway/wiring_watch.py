"""Puts together who watches the cascades of a gateway, and runs it beside the answering."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from gateway.app import Services
from gateway.chores import chores
from gateway.config import Settings
from gateway.config_prices import engine_prices
from gateway.ledger.books import Books
from gateway.ledger.calendar import Calendar
from gateway.ledger.store import StoreError
from gateway.plan import Plan
from gateway.policy_file import load_policy
from gateway.second_opinions import Figures, SecondOpinions
from gateway.trials import TrialTerms
from gateway.vigil import Accounts, Vigil, repeated
from gateway.watching import Watcher
from gateway.wiring_ledger import NoLedger

_LOG = logging.getLogger("tiergate")

_OBEY_EVERY_S = 5.0
_COMPARE_EVERY_S = 3600.0
_DAY_S = 86_400
_MOST = 0.999
"""A promise that says nothing."""


@asynccontextmanager
async def watched(services: Services, settings: Settings) -> AsyncIterator[None]:
    """Watch the cascades as long as the block lasts; nothing without a ledger or cascades.

    Alarms are obeyed before this first waits for anything, so call it with the plans just made.

    Raises:
        ConfigError: the policy cannot be read.
        NoLedger: the ledger cannot be used.
    """
    books, watch = services.books, settings.watch
    plans = _cascades(services)
    if books is None or not watch.log or not plans:
        yield
        return
    terms = _terms(settings, services, plans)
    accounts = _accounts(settings)
    vigil = Vigil(books, plans, terms, accounts)
    services.vigil = vigil
    try:
        vigil.obey()
        opinions = await _opinions(settings, books, vigil.figures)
        services.witness = Watcher(books.writer, opinions, watch.shadow_share)
        await vigil.meet({tier.name: tier.digest for plan in plans for tier in plan.tiers})
    except StoreError as error:
        raise NoLedger(f"ledger.path: {error}") from error
    work = opinions.work(vigil.took)
    looks = repeated(_OBEY_EVERY_S, vigil.obey), repeated(_COMPARE_EVERY_S, vigil.compare)
    async with chores(work, *looks):
        try:
            yield
        finally:
            services.witness = services.vigil = None


def watch_again(services: Services, settings: Settings) -> None:
    """Have whoever watches look after the plans that are there now. Alarms hold for them too.

    Raises:
        ConfigError: the policy cannot be read.
    """
    if services.vigil is None:
        return
    plans = _cascades(services)
    services.vigil.watch(plans, _terms(settings, services, plans), _accounts(settings))
    with suppress(StoreError):  # the watch reads them again in a few seconds
        services.vigil.obey()


def _accounts(settings: Settings) -> Accounts:
    return Accounts(engine_prices(settings.prices), Calendar(settings.ledger.timezone))


def _cascades(services: Services) -> set[Plan]:
    return {plan for plan in services.plans.values() if len(plan.tiers) > 1}


def _terms(settings: Settings, services: Services, plans: set[Plan]) -> TrialTerms:
    return TrialTerms(allowed_disagreement(settings, services, plans), settings.watch.false_alarm)


def allowed_disagreement(
    settings: Settings, services: Services, plans: set[Plan]
) -> dict[str, float]:
    """Engine → the share of its kept answers with which the last engine may disagree.

    Engines without a promise that holds have none, unless the configuration says how many.

    Raises:
        ConfigError: the policy cannot be read.
    """
    watch = settings.watch
    below = {tier.name for plan in plans for tier in plan.tiers[:-1]}
    if watch.most_disagreement > 0:
        return dict.fromkeys(sorted(below), watch.most_disagreement)
    if not settings.cascade.policy:
        return {}
    policy = load_policy(Path(settings.cascade.policy))
    most = policy.risk + (watch.last_engine_error if policy.mode == "labels" else 0.0)
    holds = {name for name, one in services.promises.items() if one.suspended is None}
    return dict.fromkeys(sorted(below & holds), min(most, _MOST))


async def _opinions(settings: Settings, books: Books, figures: Figures) -> SecondOpinions:
    watch = settings.watch
    today_s = time.time() // _DAY_S * _DAY_S
    spent = await books.read(lambda store: store.shadow_tokens(today_s))
    return SecondOpinions(
        waiting=watch.shadow_waiting,
        tokens_per_day=watch.shadow_tokens_per_day,
        spent_today=spent,
        figures=figures,
    )
