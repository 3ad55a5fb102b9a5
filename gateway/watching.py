"""Looks at what cascades decide: writes it down, and draws lots for second opinions.

Nothing here makes a request wait: what takes time happens on the ledger's thread or afterwards.
"""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from engines.contract import Inquiry, Question, kind_of, label_count
from gateway.auth import Caller
from gateway.decision import Decision, Look, Route
from gateway.ledger.decisions import Asked, Glance, Logged, label_digests, question_digest
from gateway.ledger.store import Store
from gateway.plan import Plan, Tier
from gateway.second_opinions import Opinion, SecondOpinions, Wanted
from policies.cells import cell
from policies.gates import gated

_DAY_S = 86_400
_MOST_KNOWN = 10_000
_RANDOM_BITS = 20
"""Of a decision's number, below the milliseconds."""


class Posts(Protocol):
    """Whoever writes things down without being waited for; see `gateway.ledger.writer.Writer`."""

    def post(self, work: Callable[[Store], Any]) -> None:
        """Have `work` done soon."""
        ...


@dataclass(frozen=True, slots=True)
class _Lot:
    """Whether a second opinion on an answer is wanted."""

    sampling: float = 0.0
    drawn: bool = False


class _Entry(NamedTuple):
    """One question of a decision, before it is made into a row."""

    decision_id: int
    name: str
    question: Question
    route: Route
    lot: _Lot


class Watcher:
    """Keeps what `gateway.app.Witness` promises. Confined to the event loop."""

    def __init__(
        self,
        writer: Posts,
        opinions: SecondOpinions,
        share: float,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`share`: probability in [0, 1] of a second opinion on a kept answer."""
        self.opinions = opinions
        self._writer = writer
        self._share = share
        self._clock = clock
        self._random = random.Random(secrets.randbits(128))
        self._last_id = 0
        self._known: dict[str, int] = {}
        """Fingerprint → day on which it was last written down."""

    def saw(
        self, caller: Caller, request_id: str, plan: Plan, inquiry: Inquiry, decision: Decision
    ) -> None:
        """Write the decision down, and ask for second opinions on some of its answers."""
        now_s = self._clock()
        entries = [
            _Entry(
                self._number(now_s), name, inquiry.questions[name], route, self._lot(plan, route)
            )
            for name, route in decision.routes.items()
        ]
        new = self._new(entries, int(now_s // _DAY_S))
        about = (now_s, caller.key_id, request_id, decision.model)

        def write(store: Store) -> None:
            rows = [_row(entry, *about) for entry in entries]
            asked = [
                Asked(mark, label_digests(mark, question), now_s) for mark, question in new.items()
            ]
            store.log_decisions(rows, asked)

        self._writer.post(write)
        drawn = [entry for entry in entries if entry.lot.drawn]
        if drawn:
            self.opinions.offer(_opinion(plan, inquiry, drawn, request_id))

    def _lot(self, plan: Plan, route: Route) -> _Lot:
        """Of answers that an engine was trusted with; of all of them under the mode `shadow`."""
        if plan.mode == "shadow":
            return _Lot(1.0, drawn=True)
        if route.tier == len(plan.tiers) or route.reason != "confident":
            return _Lot()
        share = self._share if self.opinions.affordable(route.looks[-1].tokens) else 0.0
        return _Lot(share, drawn=share > 0.0 and self._random.random() < share)

    def _number(self, now_s: float) -> int:
        """A number that no other decision has, and that rises with time."""
        fresh = (int(now_s * 1000) << _RANDOM_BITS) | self._random.getrandbits(_RANDOM_BITS)
        self._last_id = max(self._last_id + 1, fresh)
        return self._last_id

    def _new(self, entries: list[_Entry], day: int) -> dict[str, Question]:
        """Fingerprint → question, of those not written down today."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        new = {}
        for entry in entries:
            mark = entry.route.fingerprint
            if self._known.get(mark) != day:
                self._known[mark] = day
                new[mark] = entry.question
        return new


def _opinion(plan: Plan, inquiry: Inquiry, drawn: list[_Entry], request_id: str) -> Opinion:
    """What to ask, and of whom: of the last engine, or under `shadow` of the first."""
    shadow = plan.mode == "shadow"
    tier = plan.tiers[0 if shadow else -1]
    wanted = {}
    for entry in drawn:
        if shadow and _gated(tier, inquiry, entry):
            continue
        kept = None if shadow else plan.tiers[entry.route.tier - 1]
        wanted[entry.name] = _wanted(entry, kept)
    return Opinion(tier, inquiry, wanted, request_id, plan.model, budgeted=not shadow)


def _wanted(entry: _Entry, kept: Tier | None) -> Wanted:
    """What the second opinion is compared with: the answer of `kept`, if it was trusted."""
    where = cell(kind_of(entry.question), label_count(entry.question))
    mark, look = entry.route.fingerprint, entry.route.looks[-1]
    label = look.probabilities.index(max(look.probabilities))
    if kept is None:
        return Wanted(entry.decision_id, mark, where, label, look.tokens)
    what = mark if mark in kept.floors.by_question else where
    return Wanted(entry.decision_id, mark, where, label, look.tokens, kept.name, kept.digest, what)


def _gated(tier: Tier, inquiry: Inquiry, entry: _Entry) -> bool:
    images, language = bool(inquiry.assets), inquiry.language
    mark = entry.route.fingerprint
    why = gated(tier.gate, entry.question, mark, images=images, language=language)
    return why is not None


def _row(entry: _Entry, at_s: float, key_id: str, request_id: str, model: str) -> Logged:
    route = entry.route
    return Logged(
        entry.decision_id,
        at_s,
        key_id,
        request_id,
        question_digest(request_id, entry.name),
        model,
        route.fingerprint,
        kind_of(entry.question),
        label_count(entry.question),
        route.tier,
        route.engine,
        route.reason,
        tuple([_glance(look) for look in route.looks]),
        entry.lot.sampling,
        entry.lot.drawn,
    )


def _glance(look: Look) -> Glance:
    return Glance(look.engine, look.tokens, look.likelihood, look.probabilities)
