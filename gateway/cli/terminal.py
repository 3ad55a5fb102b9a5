"""The terminal that commands print tables and sentences on."""

from rich.console import Console


def terminal() -> Console:
    """Standard output, where text is text: names in brackets or colons are no markup."""
    return Console(markup=False, emoji=False, highlight=False)
