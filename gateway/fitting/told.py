"""What fitting found, as JSON and as sentences."""

from collections.abc import Sequence

from engines.contract import Json, kind_of, label_count
from gateway.fitting.measures import Measures
from gateway.fitting.training import Fitted, Terms, TooFew

_STILL_RISING = 0.01


def as_json(one: Fitted | TooFew) -> dict[str, Json]:
    """Everything about a question, without its texts."""
    examples = one.examples
    about: dict[str, Json] = {
        "question": examples.name,
        "fingerprint": examples.fingerprint,
        "kind": kind_of(examples.question),
        "labels": label_count(examples.question),
        "examples": len(examples.texts),
        "repeated": examples.repeated,
        "contradictions": examples.contradictions,
    }
    if isinstance(one, TooFew):
        return about | {"fitted": False, "why": one.why}
    evidence = one.evidence
    certificate = evidence.certificate
    return about | {
        "fitted": True,
        "trained_on": evidence.trained_on,
        "too_long": one.too_long,
        "never_seen": list(one.never_seen),
        "strength": evidence.strength,
        "temperature": evidence.temperature,
        "crossed": _measures(evidence.crossed) | {"uncalibrated_ece": evidence.uncalibrated_ece},
        "held_out": None if evidence.held_out is None else _measures(evidence.held_out),
        "promise": None
        if certificate is None
        else {
            "floor": certificate.floor,
            "labels": certificate.labels,
            "accepted": certificate.accepted,
            "errors": certificate.errors,
            "coverage": certificate.coverage,
            "p_value": certificate.p_value,
            "delta": certificate.delta,
            "start_rule": certificate.start_rule,
            "needs": certificate.needs,
        },
        "curve": [{"rows": rows, "accuracy": share} for rows, share in evidence.curve],
        "confused": [{"right": a, "said": b, "times": n} for a, b, n in evidence.confused],
        "digest": one.head.digest,
    }


def promise_sentence(one: Fitted, terms: Terms) -> str:
    """What is promised of a head, or why nothing is."""
    found = one.evidence.certificate
    if found is None:
        return "nothing is promised: no examples were kept back to test a promise on"
    if found.floor is not None:
        return (
            f"kept at a likelihood of {found.floor:.3f} or more, {found.coverage:.0%} of the "
            f"answers, at most {terms.risk:.1%} are wrong (with confidence {1 - found.delta:.1%}; "
            f"tested on {found.labels} examples: {found.errors} of {found.accepted} wrong)"
        )
    if found.needs is None:
        return f"a risk of {terms.risk:.1%} cannot be promised: it errs too often at every floor"
    return (
        f"a risk of {terms.risk:.1%} cannot be promised on {found.labels} examples kept back; "
        f"at least {found.needs} are needed"
    )


def remarks(one: Fitted) -> Sequence[str]:
    """What somebody should know before the head answers anyone."""
    found, evidence = [], one.evidence
    if one.never_seen:
        names = ", ".join(one.never_seen[:5]) + (", …" if len(one.never_seen) > 5 else "")
        found.append(f"no example has {names}: the head will all but never say so")
    if one.too_long:
        found.append(f"{one.too_long} examples do not fit the encoder's window and were left out")
    if one.examples.contradictions:
        found.append(f"{one.examples.contradictions} texts have more than one label")
    if evidence.crossed.interval.low <= evidence.crossed.majority:
        found.append(
            f"it is not shown to beat the constant answer ({evidence.crossed.majority:.1%}): the "
            "encoder may not see what this question asks for"
        )
    (before_rows, before), (rows, now) = evidence.curve[-2:]
    if now - before > _STILL_RISING:
        found.append(
            f"from {before_rows} to {rows} examples accuracy rose from {before:.1%} to "
            f"{now:.1%}: more would still help"
        )
    return found


def _measures(found: Measures) -> dict[str, Json]:
    interval = found.interval
    return {
        "rows": found.rows,
        "accuracy": found.accuracy,
        "interval": [interval.low, interval.high],
        "majority": found.majority,
        "balanced": found.balanced,
        "nll": found.nll,
        "ece": found.ece,
        "mean_distance": found.mean_distance,
        "reliability": [
            {"stated": stated, "right": right, "rows": rows}
            for stated, right, rows in found.reliability
        ],
    }
