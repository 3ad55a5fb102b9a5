"""Tells systemd how the gateway is doing, by the protocol of sd_notify(3).

Datagrams of `NAME=value` lines to the socket in `NOTIFY_SOCKET`; without it, nothing happens.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress


class Notifier:
    """Whoever is told: a service manager, or nobody."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._path = environment.get("NOTIFY_SOCKET", "")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        interval_us = environment.get("WATCHDOG_USEC", "") if watched else ""
        self._watchdog_s = int(interval_us) / 1e6 if interval_us.isdigit() else 0.0

    def ready(self) -> None:
        """The models are loaded."""
        self._tell("READY=1", "STATUS=answering")

    def reloading(self) -> None:
        """The configuration is being read again; `ready` ends it."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """No more requests are taken; those that were are answered."""
        self._tell("STOPPING=1", "STATUS=answering what was accepted")

    def loading(self, engine: str) -> None:
        """An engine is being loaded, which may take minutes."""
        self._tell(f"STATUS=loading {engine}")

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Say that the event loop still turns, at half the interval that systemd allows."""
        if not (self._path and self._watchdog_s):
            yield
            return
        told = asyncio.create_task(self._alive())
        try:
            yield
        finally:
            told.cancel()

    async def _alive(self) -> None:
        while True:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / 2)

    def _tell(self, *lines: str) -> None:
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto("\n".join(lines).encode(), address)
