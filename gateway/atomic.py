"""Files that are there whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gateway.text_file import refuse_what_is_no_file


def write_whole(path: Path, text: str) -> None:
    """Put `text` at `path`: who reads sees the old file or the new one, also after a crash.

    Raises:
        OSError: as `write_together`.
    """
    write_together({path: text})


def write_together(texts: Mapping[Path, str]) -> None:
    """Put each text at its path, none of them before all are on the disk.

    Where a path is a link, what it leads to is written.

    Raises:
        OSError: a directory is not there or cannot be written to, or a path is no file; it names
            the path, and everything is as it was.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            with _named(path):
                drafts[path] = _draft(path, text)
        for path, draft in drafts.items():
            with _named(path):
                draft.replace(os.path.realpath(path))
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Raises: OSError: it is not there and cannot be made; it names the path."""
    with _named(path):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def refuse_target(path: Path) -> None:
    """Raises: OSError: what `write_whole` would raise before it writes; it names the path."""
    with _named(path):
        if path.exists():
            _refuse_what_is_no_file(path)
        folder = Path(os.path.realpath(path)).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            number = errno.EACCES if folder.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number))


def _draft(path: Path, text: str) -> Path:
    """The text beside where it is to stand, on the disk."""
    refuse_target(path)
    target = Path(os.path.realpath(path))
    number, name = tempfile.mkstemp(prefix=f".{target.name[:99]}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _refuse_what_is_no_file(path: Path) -> None:
    try:
        refuse_what_is_no_file(path)
    except ValueError as error:
        raise OSError(errno.EEXIST, str(error)) from None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error is about this path, and not about the draft."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
