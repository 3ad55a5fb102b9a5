"""What a second opinion says about a promise: evidence that is kept, and an alarm at its end.

Called inside a transaction of the store, so that any number of gateways on one ledger share one
test.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.ledger.decisions import Alarm, DecisionLog, Glance, Trial
from gateway.second_opinions import Wanted
from policies.sequential import Evidence, after


@dataclass(frozen=True, slots=True)
class TrialTerms:
    """What is tested, and how carefully."""

    promised: Mapping[str, float]
    """Engine → the share of its kept answers that the last engine may disagree with."""
    false_alarm: float
    """Most probability that a kept promise is ever called broken, for each engine and subject."""


def weighed(
    log: DecisionLog, wanted: Wanted, glance: Glance, terms: TrialTerms, at_s: float
) -> Alarm | None:
    """Keep the second opinion and what it proves; the alarm that it raises, if any.

    A test begins anew when the promise or the engine's weights are others.
    """
    log.log_shadow(wanted.decision_id, glance)
    promised = terms.promised.get(wanted.kept_by or "")
    if wanted.kept_by is None or promised is None:
        return None
    trial = log.trial(wanted.kept_by, wanted.what)
    if trial is None or (trial.digest, trial.evidence.promised) != (wanted.digest, promised):
        trial = Trial(wanted.kept_by, wanted.what, wanted.digest, at_s, Evidence(promised))
    evidence = after(trial.evidence, wrong=glance.label != wanted.label)
    trial = trial._replace(evidence=evidence)
    log.keep_trial(trial)
    if not evidence.alarm(terms.false_alarm):
        return None
    alarm = Alarm("disagreement", trial.engine, trial.what, _message(trial), at_s)
    return alarm if log.raise_alarm(alarm) else None


def _message(trial: Trial) -> str:
    seen, wrong = trial.evidence.seen, trial.evidence.wrong
    return (
        f"The last engine disagrees with {trial.engine} about {trial.what} more than the promised "
        f"{trial.evidence.promised:.1%}: in {wrong} of {seen} kept answers. They go up from now on."
    )
