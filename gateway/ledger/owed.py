"""Work that is done for a caller: it has to be written even where the caller must be refused."""

from abc import ABC, abstractmethod

from gateway.ledger.store import Store


class Owed(ABC):
    """Work for a writer, which keeps it for better times also when somebody waits for it."""

    @abstractmethod
    def __call__(self, store: Store) -> None:
        """Write it."""

    @abstractmethod
    def refused(self) -> "Owed":
        """The same, for whoever was told 503 because it could not be written."""
