"""What `/ready` says: whether questions are answered, and how each engine is."""

from collections.abc import Callable, Mapping

from engines.contract import Health


def readiness(
    ready: bool,
    engines: Mapping[str, Mapping[str, object]],
    healths: Mapping[str, Callable[[], Health]],
) -> tuple[str, dict[str, dict[str, object]]]:
    """`ready`, `loading`, or `lost` when a device is gone; and engine name → what it is.

    `engines` is what is known of each engine for good, `healths` how to find out how it is now.
    """
    found = {name: look() for name, look in healths.items()}
    lost = any(health.state == "lost" for health in found.values())
    about: dict[str, dict[str, object]] = {}
    for name, known in engines.items():
        health = found.get(name, Health())
        about[name] = {**known, "state": health.state, "counts": dict(health.counts)}
    return "lost" if lost else "ready" if ready else "loading", about
