"""Which questions are of a kind: the cells that temperatures and floors are kept for."""

from engines.contract import Kind
from engines.fingerprint import fingerprint

__all__ = ["CELLS", "cell", "fingerprint"]

CELLS: tuple[str, ...] = (
    "noul",
    *(f"{kind}:{size}" for kind in ("choice", "score") for size in ("2", "3-5", "6-10", "11+")),
)
"""Every cell there is."""


def cell(kind: Kind, labels: int) -> str:
    """The cell of a question with so many labels, e.g. `choice:3-5`; a noul has one, `noul`."""
    if kind == "noul":
        return "noul"
    if labels <= 2:
        return f"{kind}:2"
    if labels <= 5:
        return f"{kind}:3-5"
    return f"{kind}:6-10" if labels <= 10 else f"{kind}:11+"
