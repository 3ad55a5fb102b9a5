"""A bar for weights of several gigabytes, on standard error and on terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from gateway.cli.screen import screen
from gateway.wiring_engines import Bytes


@contextmanager
def loading_bar(console: Console | None = None) -> Iterator[Bytes | None]:
    """Whom to tell how many bytes are loaded; `None` where nobody would see a bar."""
    console = console or screen(errors=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("loading {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    tasks: dict[str, TaskID] = {}

    def told(name: str, done: int, total: int) -> None:
        if name not in tasks:
            bar.start()  # and not before: it redraws itself for as long as it runs
            tasks[name] = bar.add_task(name, total=total)
        bar.update(tasks[name], completed=done)
        if done >= total:
            bar.remove_task(tasks.pop(name))
            if not tasks:
                bar.stop()

    try:
        yield told
    finally:
        bar.stop()
