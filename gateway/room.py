"""How many bytes of request bodies are in memory at once, over all connections.

A part of the room is kept for small bodies, so that a few large ones never keep many small ones
out. What is counted is what has arrived and what it was decoded to, until its request is answered.
"""

import threading
from collections.abc import Iterable
from types import TracebackType

from gateway.errors import Problem, Refusal

SMALL_BYTES = 65_536
"""Bodies of up to so many bytes may use all of the room."""
_LARGE_QUARTERS = 3
"""Longer ones may use so many quarters of it."""
_RETRY_S = 1.0


class Room:
    """The bytes that all requests share. Used from any thread: decoding happens on several."""

    def __init__(self, max_bytes: int) -> None:
        """At most `max_bytes` in all."""
        self.max_bytes = max_bytes
        self.max_large_bytes = max_bytes * _LARGE_QUARTERS // 4
        self.taken_bytes = 0
        """What the requests of this moment hold together; changed by shares, under the lock."""
        self.lock = threading.Lock()

    def share(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> "Share":
        """The part of one request, empty at first; its headers tell whether it will be small."""
        declared = b""
        for name, value in headers:
            if name == b"content-length":
                declared = value
                break
        return Share(self, small=not declared.isdigit() or int(declared) <= SMALL_BYTES)


class Share:
    """What one request holds of the room; `with room.share() as share:` gives it back."""

    __slots__ = ("_bytes", "_ended", "_room", "_small")

    def __init__(self, room: Room, *, small: bool) -> None:
        """`small`: it is not known to grow beyond `SMALL_BYTES`."""
        self._room = room
        self._small = small
        self._bytes = 0
        self._ended = False

    def __enter__(self) -> "Share":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._room.lock:
            self._ended = True
            self._room.taken_bytes -= self._bytes
            self._bytes = 0

    def grow(self, by_bytes: int) -> None:
        """So many bytes more are in memory.

        Raises:
            Refusal: 529, there is no room for them; or the request has ended meanwhile, and a
                thread was still decoding for it.
        """
        room = self._room
        with room.lock:
            small = self._small and self._bytes + by_bytes <= SMALL_BYTES
            most = room.max_bytes if small else room.max_large_bytes
            fits = not self._ended and room.taken_bytes + by_bytes <= most
            if fits:
                self._bytes += by_bytes
                room.taken_bytes += by_bytes
        if not fits:
            raise Refusal(Problem("overloaded", _FULL, retry_after_s=_RETRY_S))

    def shrink(self, by_bytes: int) -> None:
        """So many of them are not in memory any more; at most what there is."""
        with self._room.lock:
            freed = min(by_bytes, self._bytes)
            self._bytes -= freed
            self._room.taken_bytes -= freed

    def empty(self) -> None:
        """None of them is."""
        self.shrink(self._bytes)


_FULL = "Overloaded: the request bodies of others take all the memory there is for them."
