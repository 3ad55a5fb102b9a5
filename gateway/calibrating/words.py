"""Promises in sentences, the same in the table, the report and `tiergate policy show`."""

from gateway.policy_file import PolicyFile, Promise


def about(promise: Promise) -> str:
    """What a floor is for, e.g. `choice:11+` or `spam (0123456789abcdef)`."""
    if promise.cell is not None:
        return promise.cell
    return f"{promise.name} ({promise.question})" if promise.name else str(promise.question)


def sentence(promise: Promise, policy: PolicyFile) -> str:
    """What is promised, or why nothing is."""
    wrong = "wrong" if policy.mode == "labels" else "other than the last engine's"
    if promise.floor is not None:
        return (
            f"Of the answers that {promise.engine} gives to {about(promise)} with a likelihood of "
            f"at least {promise.floor:.6g}, at most {percent(policy.risk)} are {wrong}, with "
            f"confidence {percent(1 - promise.delta)}. Evidence: {promise.accepted} of "
            f"{promise.labels} answers are accepted, {promise.errors} of them {wrong}; "
            f"p = {promise.p_value:.3g}."
        )
    return f"{promise.engine} on {about(promise)}: {refusal(promise, policy)}"


def refusal(promise: Promise, policy: PolicyFile) -> str:
    """Why nothing is promised, and what it would take."""
    if "never kept" in promise.start_rule:
        return f"nothing to promise: its answers are {promise.start_rule.removeprefix('none: ')}."
    cannot = f"cannot promise {percent(policy.risk)} with {promise.labels} tested labels"
    if promise.needs is None:
        return (
            f"{cannot}, and more will not do: at every floor errors are about as frequent or more. "
            "Separate the questions or states it gets wrong, or accept a higher risk."
        )
    if promise.start_rule.startswith("none"):
        return f"{cannot}; at least {promise.needs} labels in all are needed."
    return (
        f"{cannot}; about {promise.needs} labels in all would be needed, if errors stay as "
        "frequent as they are."
    )


def terms(policy: PolicyFile) -> str:
    """How the confidence is to be read."""
    floors = len(policy.floors)
    if policy.joint and floors > 1:
        return (
            f"The {floors} floors hold together with confidence {percent(1 - policy.delta)}: they "
            "share the chance of failure."
        )
    if floors > 1:
        return (
            f"Each floor by itself holds with confidence {percent(1 - policy.delta)}; that all "
            f"{floors} hold is less certain."
        )
    return f"The floor holds with confidence {percent(1 - policy.delta)}."


def limits(policy: PolicyFile) -> list[str]:
    """What the promise does not say, one sentence each."""
    found = [
        "It is about questions and states like those in the labelled file. When traffic changes, "
        "it says nothing any more.",
        "The confidence is over the drawing of the labels: of many calibrations done like this, "
        "that share keeps its word.",
        "It is about the share of wrong answers among all that are kept, not about each of them.",
    ]
    if policy.mode == "agreement":
        found.append(
            "Agreement is not truth: an answer that both engines get wrong counts as right here, "
            "and one that only the small engine gets right counts as wrong."
        )
    return found


def percent(share: float) -> str:
    """As `10 %` or `7.3 %`: three digits at most, and none that say nothing."""
    return f"{share * 100:.3g} %"
