"""Keeps weights loaded while they are used; lets go of them when idle, gets them on demand."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Literal, TypeVar

from engines.contract import Broken, Loading

_log = logging.getLogger("tiergate.clef")

_MIN_RETRY_S = 0.25
_MAX_RETRY_S = 10.0

State = Literal["ready", "resting", "loading", "lost"]
T = TypeVar("T")


class Keeper(Generic[T]):
    """One thing that is dear to keep and slow to load. Thread-safe."""

    def __init__(
        self,
        load: Callable[[], T],
        keep_alive_s: float = 0.0,
        *,
        dropped: Callable[[], None] = lambda: None,
        is_final: Callable[[Exception], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Loads at once. With `keep_alive_s` 0 it never rests; `dropped` is called when it does;
        `is_final` says of a load that failed that no other will succeed."""
        self._load = load
        self._keep_alive_s = keep_alive_s
        self._dropped = dropped
        self._is_final = is_final
        self._clock = clock
        self._lock = threading.RLock()
        """Held while the thing is used, loaded or dropped."""
        self._timer: threading.Timer | None = None
        self._closed = False
        begun_s = clock()
        self._kept: T | None = load()
        self._state: State = "ready"
        self._load_s = clock() - begun_s
        self._begun_s = begun_s
        self._used_s = clock()
        self._watch()

    @property
    def state(self) -> State:
        """How it is now."""
        return self._state

    def want(self) -> None:
        """Nothing if the thing is there; otherwise it is being loaded from now on.

        Raises:
            Loading: with the time that is left, going by the first load.
            Broken: it is lost.
        """
        self._used_s = self._clock()
        if self._state == "ready":
            return
        if self._state == "resting":
            self._wake()
        self._refuse()

    @contextmanager
    def using(self) -> Iterator[T]:
        """The thing, which stays for as long.

        Raises:
            Loading, Broken: see `want`.
        """
        self.want()
        with self._lock:
            if self._kept is None:  # it went to rest in between, or was closed
                self.want()
                raise Broken("the model is not there")
            yield self._kept
            self._used_s = self._clock()

    def lose(self) -> None:
        """It will never work again in this process."""
        self._state = "lost"

    def rest_if_idle(self) -> bool:
        """Let go of it if nobody has used it for long enough; whether that happened."""
        with self._lock:
            idle_s = self._clock() - self._used_s
            if self._state != "ready" or not 0 < self._keep_alive_s <= idle_s:
                return False
            self._kept, self._state = None, "resting"
            self._dropped()
            _log.info("the model rests after %.0f s without a question", idle_s)
            return True

    def close(self) -> None:
        """Let go of it for good."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._kept = None

    def _wake(self) -> None:
        """Begin to load, unless somebody else has begun."""
        with self._lock:
            if self._state != "resting":
                return
            self._state, self._begun_s = "loading", self._clock()
        threading.Thread(target=self._load_again, name="clef-load", daemon=True).start()

    def _refuse(self) -> None:
        match self._state:
            case "ready":
                return
            case "lost":
                raise Broken("the device of the model is lost")
            case _:
                left_s = self._begun_s + self._load_s - self._clock()
                wait_s = min(max(left_s, _MIN_RETRY_S), _MAX_RETRY_S)
                raise Loading("the model is being loaded", retry_after_s=wait_s)

    def _load_again(self) -> None:
        begun_s = self._clock()
        try:
            loaded = self._load()
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to
            _log.exception("the model cannot be loaded again")
            self._state = "lost" if self._is_final(error) else "resting"
            return  # if it rests, who asks next tries again
        with self._lock:
            if not self._closed:
                self._kept, self._state = loaded, "ready"
                self._load_s = self._clock() - begun_s
                self._used_s = self._clock()
        self._watch()

    def _watch(self) -> None:
        """Look again when it may have been idle for long enough."""
        if self._closed or not self._keep_alive_s:
            return
        wait_s = max(0.05, self._used_s + self._keep_alive_s - self._clock())
        self._timer = threading.Timer(wait_s, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        if not self.rest_if_idle():
            self._watch()
