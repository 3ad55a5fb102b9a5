"""Charges that are written together."""

from collections.abc import Sequence
from typing import TypeAlias

from gateway.ledger.owed import Owed
from gateway.ledger.store import Row, Store

Day: TypeAlias = tuple[Sequence[Row], int]
"""Charges of one day, and when that began."""

_REFUSED = 503


class Rows(Owed):
    """Work for a writer: all of them or none, unless one of them does not fit."""

    def __init__(self, days: Sequence[Day]) -> None:
        self._days = days

    def __call__(self, store: Store) -> None:
        """Write them."""
        for rows, day_s in self._days:
            store.charge_rows(rows, day_s)

    def refused(self) -> "Rows":
        """The same as charges of answers that nobody was given."""
        return Rows([([refused(row) for row in rows], day_s) for rows, day_s in self._days])

    def parts(self) -> "list[Rows]":
        """Each row alone; nothing if there is only one."""
        found = [Rows([([row], day_s)]) for rows, day_s in self._days for row in rows]
        return found if len(found) > 1 else []

    def leave(self, parts: "Sequence[Rows]") -> None:
        """Be no more than these parts: the others are written."""
        self._days = [day for part in parts for day in part._days]


def refused(row: Row, status: int = _REFUSED) -> Row:
    """The same for a request that was not answered; what was read for it costs the same."""
    return (*row[:13], 0, status, *row[15:])
