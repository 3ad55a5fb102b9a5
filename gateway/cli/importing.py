"""What every import ends with: a bar while it runs, and a configuration that serves."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.cli.screen import screen
from gateway.config import Settings


class Told(Protocol):
    """Whom to tell how many bytes are done, and of how many."""

    def __call__(self, done: int, total: int) -> None: ...


@contextmanager
def bar(about: str) -> Iterator[Told]:
    """A bar on standard error."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen(errors=True)) as progress:
        task = progress.add_task(about, total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield told


def tell_section(kind: str, path: Path, more: Mapping[str, str]) -> None:
    """Print a configuration file that serves this checkpoint."""
    aliases = json.dumps(list(Settings().models["starter"].aliases))
    print("\nserve it with this config.toml:\n")
    print(f'default_model = "{kind}"\n')
    print(f'[engines.{kind}]\nkind = "{kind}"\npath = {json.dumps(str(path.resolve()))}')
    for name, value in more.items():
        print(f"{name} = {value}")
    print(f'\n[models.{kind}]\nengine = "{kind}"\naliases = {aliases}')
    print("\n# In a file that has other models, take these aliases and default_model from them.")
