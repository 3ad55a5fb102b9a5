"""Tables with nothing left out: a cost whose end is missing is another cost."""

from rich.measure import Measurement
from rich.table import Table

from gateway.cli.screen import screen

_WIDEST = 10_000


def print_whole(table: Table) -> None:
    """Print the table with every character of every cell.

    On a terminal it is as wide as that, or as its longest words make it; elsewhere every line of a
    cell is one line.
    """
    console = screen()
    for column in table.columns:
        column.overflow = "fold"
    room = console.options.update(max_width=_WIDEST)
    needed = Measurement.get(console, room, table)
    least = needed.minimum if console.is_terminal else needed.maximum
    console.width = max(console.width, least)
    console.print(table)
