"""Truths about earlier answers: whose they are, which label they mean, and that they are kept."""

import time
from collections.abc import Sequence
from typing import Any

from gateway.auth import Caller, unwritable
from gateway.dialects.outcomes import Outcome, decode, place
from gateway.errors import Fault, Refusal, invalid, refusal
from gateway.ledger.books import Books
from gateway.ledger.decisions import DecisionLog, Logged, label_digest, question_digest
from gateway.ledger.store import StoreError

_MOST = 10_000
"""Decisions of one request id that are looked at, the latest: as many as a request may ask."""
_MAX_FAULTS = 100


async def outcomes_answer(books: Books | None, caller: Caller, body: bytes) -> dict[str, Any]:
    """The JSON that answers a body of outcomes: how many were kept, which are all of them.

    Raises:
        Refusal: 403 without the scope, 404 without a ledger, 422 with the location of everything
            that is wrong, 503 when the ledger cannot be used. Nothing was kept then.
    """
    caller.require("decide")
    if books is None:
        raise refusal("not_found", "There is no ledger here, so no answer is remembered.")
    outcomes = decode(body)
    at_s = time.time()
    try:
        await books.writer.submit(lambda log: keep(log, caller.key_id, outcomes, at_s))
    except StoreError as error:
        raise Refusal(unwritable()) from error
    return {"accepted": len(outcomes)}


def keep(log: DecisionLog, key_id: str, outcomes: Sequence[Outcome], at_s: float) -> None:
    """Note every outcome at its decision.

    Raises:
        Refusal: 422 for what no decision of the key is about, or no label's name; none is kept.
    """
    faults, told = [], []
    requests: dict[str, list[Logged]] = {}
    for at, one in enumerate(outcomes):
        if one.request_id not in requests:
            requests[one.request_id] = log.decisions_of(key_id, one.request_id, _MOST)
        found = _meant(requests[one.request_id], one)
        if isinstance(found, Logged):
            label = _label(log, found, one)
            if label is not None:
                told.append((found.decision_id, label))
                continue
            message = _EXPECTED[found.kind]
            found = Fault("unknown_label", ("truth",), message.format(last=found.labels - 1))
        faults.append(Fault(found.type, (*place(at), *found.loc), found.msg))
    if faults:
        raise invalid(*faults[:_MAX_FAULTS])
    for decision_id, label in told:
        log.tell_truth(decision_id, label, at_s)


_EXPECTED = {
    "noul": "The truth of a noul is true or false.",
    "choice": "The truth of a choice is the name of one of its options.",
    "score": "The truth of a score is a level, from 0 to {last}.",
}


def _meant(decisions: Sequence[Logged], outcome: Outcome) -> Logged | Fault:
    """The latest decision that the outcome is about."""
    if not decisions:
        message = "No answer of a cascade to this API key has this request id."
        return Fault("unknown_request", ("request_id",), message)
    digest = question_digest(outcome.request_id, outcome.name)
    for one in decisions:
        same = (
            one.question == digest if outcome.by == "question" else one.fingerprint == outcome.name
        )
        if same:
            return one
    return Fault("unknown_question", (outcome.by,), "That request did not ask this question.")


def _label(log: DecisionLog, decision: Logged, outcome: Outcome) -> int | None:
    """The place of the label that the truth names; `None` = it names none."""
    match decision.kind, outcome.truth:
        case "noul", bool(truth):
            return 0 if truth else 1
        case "score", int(level) if not isinstance(level, bool):
            return level if 0 <= level < decision.labels else None
        case "choice", str(option):
            digests = log.label_digests(decision.fingerprint)
            digest = label_digest(decision.fingerprint, option)
            return digests.index(digest) if digest in digests else None
        case _:
            return None
