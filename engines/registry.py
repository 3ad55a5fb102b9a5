"""Kind of engine → where its class lives. Nothing is imported until a configuration names it."""

import importlib
from collections.abc import Callable
from typing import Any, cast

from engines.contract import Engine

KINDS: dict[str, str] = {
    "clef": "engines.clef.engine:clef_engine",
    "fitted": "engines.fitted.engine:FittedEngine",
    "laya": "engines.laya.engine:laya_engine",
    "scripted": "engines.scripted:ScriptedEngine",
    "starter": "engines.starter.engine:StarterEngine",
}


def engine_class(kind: str) -> Callable[..., Engine[Any]]:
    """The class that makes engines of this kind; call it with the engine's own options.

    Raises:
        KeyError: no such kind.
        ImportError: the kind needs an extra that is not installed.
    """
    module, _, name = KINDS[kind].partition(":")
    return cast(Callable[..., Engine[Any]], getattr(importlib.import_module(module), name))
