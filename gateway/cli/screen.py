"""The terminal as commands write to it."""

from rich.console import Console


def screen(*, errors: bool = False) -> Console:
    """Standard output, or standard error; what is printed there is never taken for markup.

    Names of questions and options may hold any character: `[/a]` is no end of anything, and
    `:fire:` no picture.
    """
    return Console(stderr=errors, markup=False, emoji=False)
