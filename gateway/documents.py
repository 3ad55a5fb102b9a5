"""TOML and JSON texts to trees; whatever is wrong with a text is a `ValueError` with a sentence.

The parsers themselves end with a `RecursionError` on texts that nest without end.
"""

import json
import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MAX_DEPTH = 200
"""Far more than anything here needs, far less than breaks whoever walks through the tree."""
ENDLESS = "an integer has at most 64 bits"
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"


def toml_tree(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        ValueError: it is not TOML, or too deep.
    """
    return _parsed(tomllib.loads, text)


def json_tree(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, or too deep.
    """
    return _parsed(json.loads, text)


def endless_number(tree: object) -> tuple[str, ...] | None:
    """Where the first integer stands that TOML does not have, for want of bits; `None` = nowhere.

    Python reads them all, and prints none of them.
    """
    nodes: list[tuple[tuple[str, ...], object]] = [((), tree)]
    for key, node in nodes:
        match node:
            case dict():
                nodes += [((*key, name), inner) for name, inner in node.items()]
            case list():
                nodes += [((*key, str(place)), inner) for place, inner in enumerate(node)]
            case int() if not -(2**63) <= node < 2**63:
                return key
    return None


def _parsed(parse: Callable[[Any], T], text: str | bytes) -> T:
    try:
        tree = parse(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _refuse_depth(tree)
    return tree


def _refuse_depth(tree: object) -> None:
    """Level by level, so that this cannot go too deep itself."""
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)
