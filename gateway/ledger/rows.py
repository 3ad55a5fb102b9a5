"""Charges of one day that are written together."""

from collections.abc import Sequence

from gateway.ledger.store import Row, Store


class Rows:
    """Work for a writer."""

    def __init__(self, rows: Sequence[Row], day_s: int) -> None:
        self._rows = rows
        self._day_s = day_s

    def __call__(self, store: Store) -> None:
        """Write them."""
        store.charge_rows(self._rows, self._day_s)

    def parts(self) -> "list[Rows]":
        """Each row alone; nothing if there is only one."""
        if len(self._rows) < 2:
            return []
        return [Rows([row], self._day_s) for row in self._rows]
