"""What names on the wire mean, of reasons, doubts, scopes, formulas and limits: in words."""

REASONS = {
    "confident": "the first engine was sure enough",
    "low_confidence": "a cheaper engine was not sure enough",
    "too_long": "too long for a cheaper engine",
    "options_cut": "a cheaper engine cannot see all options",
    "instructions_cut": "a cheaper engine cannot see the whole instructions",
    "too_many_options": "more options than a cheaper engine is trusted with",
    "language": "a language that a cheaper engine is not trusted with",
    "images": "a cheaper engine cannot see images",
    "not_competent": "a kind that a cheaper engine is not made for",
    "known_bad": "a question that a cheaper engine is known to be bad at",
    "unknown_question": "a question that a cheaper engine was not made for",
    "no_promise": "nothing is promised about a cheaper engine here",
    "suspended": "the promise about a cheaper engine is suspended",
    "demoted": "a cheaper engine is not trusted here since an alarm",
    "cap_reached": "unsure, but enough has gone up lately",
    "budget": "unsure, but the key's budget allows no more",
    "large_unavailable": "unsure, but the better engine did not answer",
    "small_unavailable": "the cheaper engine did not answer",
    "pinned": "the model was named exactly",
    "off": "the last engine answers everything",
    "shadow": "the last engine answers everything, the others are watched",
    "cost_of_error": "a wrong answer would cost more than asking the better engine",
}
"""Reason → what it means."""

DOUBTS = {
    "not_competent": "it is not made for such a question, so this is little more than a guess",
    "truncated": "it did not read all of the text",
}
"""What an engine may say of its own answer → what that means."""

SCOPES = {
    "decide": "ask, list models",
    "usage": "see what it used itself",
    "metrics": "read /metrics",
    "admin": "everything, for all keys; log in here",
}
"""Scope → what a key with it may do."""

FORMULAS = {
    "jev": "as TypeSafe's jev",
    "entropy": "1 − H / log n",
    "top": "the largest probability",
    "margin": "the distance to the second",
}
"""Formula behind `confidence` → what it says."""

LIMITS = {
    "rpm": "requests a minute",
    "tpm": "tokens a minute",
    "tokens_per_day": "tokens a day",
    "tokens_per_month": "tokens a month",
    "escalations_per_day": "escalations a day",
    "escalations_per_month": "escalations a month",
    "usd_per_day": "US dollars a day",
    "usd_per_month": "US dollars a month",
}
"""Limit → how it is called, in the order of forms."""
