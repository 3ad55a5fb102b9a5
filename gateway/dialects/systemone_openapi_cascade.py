"""What the OpenAPI document says of cascades: whose answer it is, and why."""

from typing import Any, TypeAlias, get_args

from policies.confidence import Formula

Node: TypeAlias = dict[str, Any]

_STRING: Node = {"type": "string"}
_COUNT: Node = {"type": "integer", "minimum": 0}
_SHARE: Node = {"type": "number", "minimum": 0, "maximum": 1}

ON_ANSWERS: Node = {
    "x_tier": {
        "type": "integer",
        "minimum": 1,
        "description": "Of a model with several engines: which one answered, 1 = the cheapest.",
    },
    "x_engine": {**_STRING, "description": "Its name."},
    "x_reason": {
        **_STRING,
        "description": "Of a model with one engine: why it does not vouch. With several: why this "
        "one answered, `confident` or what kept a cheaper or a better one from it.",
    },
    "x_doubt": {**_STRING, "description": "Why the engine of a cascade does not vouch."},
    "x_native_confidence": {
        **_SHARE,
        "description": "The confidence that the model's own server would report.",
    },
}
"""Properties that any answer may have."""

ON_DECISIONS: Node = {
    "x_cascade": {
        "type": "object",
        "description": "Questions that went up, and tokens by engine; of models with several.",
        "required": ["escalated", "tokens"],
        "properties": {
            "escalated": _COUNT,
            "tokens": {"type": "object", "additionalProperties": _COUNT},
        },
    }
}
"""Properties that a decision may have."""

HEADERS: Node = {
    "x-tiergate-tier": {"description": "The highest tier that answered.", "schema": _COUNT},
    "x-tiergate-escalated": {"description": "Questions that went up.", "schema": _COUNT},
}
"""Response headers of cascades."""

CONFIDENCE: Node = {
    "name": "x-tiergate-confidence",
    "in": "header",
    "required": False,
    "description": "The formula of `confidence` in this answer; the key's own, or `jev`, without.",
    "schema": {"enum": list(get_args(Formula))},
}
"""A parameter of every request."""
