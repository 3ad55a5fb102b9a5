"""Engine sections to engines in their lanes; one of the few files that see a concrete engine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from engines.contract import Engine, EngineError
from engines.fleet import Fleet
from engines.lane import Lane, Shape, batches, rows
from engines.registry import engine_class
from gateway.config import Settings
from gateway.config_clef import ClefEngineSection
from gateway.config_engines import EngineSection, LayaEngineSection
from gateway.quota import cpu_quota

_GPU_BATCH_TOKENS = 16_384
_LARGE_BYTES = 1 << 30
_OF_THE_LANE = {"kind", "workers", "max_waiting", "memo_bytes", "devices", "on_lost"}

Bytes = Callable[[str, int, int], None]
"""Told an engine's name, how many bytes of its weights are loaded, and of how many."""


class CannotStart(Exception):
    """The environment lacks something: an extra, a file, a port. The message says what."""


Progress = Callable[[str], None]
"""Told the name of each engine before it is loaded."""


def open_engine(name: str, section: EngineSection, **more: Any) -> Engine[Any]:
    """The engine of an `[engines.<name>]` table; `more` are options that stand in no section.

    Raises:
        CannotStart: an extra is not installed, a file is missing or not what it should be.
    """
    options = section.model_dump(exclude=_OF_THE_LANE) | more
    if isinstance(section, ClefEngineSection):
        options.setdefault("device", section.devices[0])
        options["threads"] = section.threads or cpu_quota()
    try:
        return engine_class(section.kind)(**options)
    except ImportError as error:
        raise CannotStart(
            f"engines.{name} needs the package '{error.name}'; "
            f"install the extra, in tiergate's folder: pip install '.[{_extra(section)}]'"
        ) from error
    except (OSError, ValueError, RuntimeError, EngineError) as error:
        raise CannotStart(f"engines.{name} cannot be loaded: {error}") from error


@contextmanager
def open_lanes(
    settings: Settings,
    progress: Progress = lambda _: None,
    loaded: Bytes | None = None,
) -> Iterator[dict[str, Lane | Fleet]]:
    """Engine name → lane, loaded in the order of the configuration; drained on leaving.

    Raises:
        CannotStart: see `open_engine`.
    """
    with ExitStack() as stack:
        lanes: dict[str, Lane | Fleet] = {}
        for name, section in settings.engines.items():
            progress(name)
            opened = []
            for more in _each(name, section, loaded or _in_steps(progress)):
                engine = open_engine(name, section, **more)
                shape = shape_of(section, engine.facts.device)
                lane = Lane(name, engine, shape, max_waiting=section.max_waiting)
                stack.callback(lane.close, drain_s=settings.server.drain_s)
                opened.append(lane)
            lanes[name] = opened[0] if len(opened) == 1 else Fleet(name, opened)
        yield lanes


def shape_of(section: EngineSection, device: str) -> Shape:
    """One row at a time on every CPU of the quota; batches on a GPU, read by one thread.

    `device`: where the engine runs, see `engines.contract.Facts`.
    """
    if isinstance(section, ClefEngineSection):
        return batches(section.batch_tokens)
    if isinstance(section, LayaEngineSection) and device == "cuda":
        return batches(_GPU_BATCH_TOKENS)
    return rows(section.workers or cpu_quota())


def _each(name: str, section: EngineSection, loaded: Bytes) -> Iterator[dict[str, Any]]:
    """What each engine behind the name is told besides its section."""
    if not isinstance(section, ClefEngineSection):
        yield {}
        return
    for device in section.devices:
        yield {"device": device, "progress": partial(loaded, f"{name} on {device}")}


def _in_steps(progress: Progress) -> Bytes:
    """Tells of every tenth of what takes several gigabytes, as part of the engine's name."""
    tenths: dict[str, int] = {}

    def loaded(name: str, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if total >= _LARGE_BYTES and tenths.get(name) != tenth:
            tenths[name] = tenth
            progress(f"{name}: {10 * tenth} % of {total / 1e9:.1f} GB")

    return loaded


def _extra(section: EngineSection) -> str:
    match section:
        case LayaEngineSection():
            return f"{section.device},laya"
        case ClefEngineSection():
            return "clef"
        case _:
            return "cpu"
