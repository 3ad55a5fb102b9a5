"""Says what is going on when loading takes more than a second, on standard error."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.cli.screen import screen
from gateway.wiring_engines import Progress


@contextmanager
def told_when_slow(patience_s: float = 1.0) -> Iterator[Progress]:
    """A progress callback; after `patience_s` a person sees what it was last told.

    On a terminal as a spinner, elsewhere as one plain line per change.
    """
    console = screen(errors=True)
    spinner = console.status("starting")
    slow = threading.Event()
    last = "starting"

    def show() -> None:
        slow.set()
        if console.is_terminal:
            spinner.start()
        else:
            print(last, file=sys.stderr, flush=True)

    def told(name: str) -> None:
        nonlocal last
        last = f"loading {name}"
        spinner.update(last)
        if slow.is_set() and not console.is_terminal:
            print(last, file=sys.stderr, flush=True)

    timer = threading.Timer(patience_s, show)
    timer.daemon = True
    timer.start()
    try:
        yield told
    finally:
        timer.cancel()
        spinner.stop()
