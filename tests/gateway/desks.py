"""The accounts of one gateway for tests, on a ledger that can be stuck or broken."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gateway.charging import Terms
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import StoreError
from gateway.ledger.writer import Writer
from gateway.metering import Metering
from gateway.rates import Rates


class Silent:
    """A reader that is never asked: a test reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


class Gated(SqliteStore):
    """A store that waits while its gate is shut, and fails while it is broken."""

    broken = False

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.gate = threading.Event()
        self.gate.set()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.gate.wait()
        if self.broken:
            raise StoreError("broken")
        with super().transaction():
            yield


class Desk:
    """The accounts of one gateway."""

    def __init__(self, path: str, terms: Terms) -> None:
        self.store = Gated(path)
        self.rates = Rates()
        self.paced: Counter[str] = Counter()
        """Key → tokens that were read here."""
        self.writer = Writer(lambda: self.store, interval_s=3600.0)
        self.metering = Metering(self.writer, self.rates, terms)

    @property
    def writes(self) -> bool:
        """Whether its writer is about to write something, and nothing keeps it from that."""
        writer = self.writer
        busy = writer._busy or writer._soon or writer._moment is not None
        return busy and self.store.gate.is_set()

    def mend(self) -> None:
        """Its ledger can be written."""
        self.store.broken = False
        self.store.gate.set()

    def close(self) -> None:
        """As a gateway that is told to stop."""
        self.metering.close()
        self.writer.close()
