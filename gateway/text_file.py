"""Text files of an operator. What is no file is refused before anybody waits for it."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ENCODING = "utf-8-sig"  # some editors put a mark at the beginning
_INHERITED = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/self/fd/\d+")
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def text_of(path: Path, *, streams: bool = False) -> str:
    """The file's content.

    `streams`: whether `/dev/stdin` and `/dev/fd/N` may be whatever the caller's shell made them.

    Raises:
        ValueError: it cannot be read or is not UTF-8; the message says why, without the path.
    """
    with _told():
        refuse_what_is_no_file(path, streams=streams)
        return path.read_text(encoding=_ENCODING)


def lines_in(path: Path) -> Iterator[str]:
    """The file's lines one at a time, however long it is; streams as in `text_of` are fine.

    Raises:
        ValueError: as `text_of`.
    """
    with _told():
        refuse_what_is_no_file(path, streams=True)
        with path.open(encoding=_ENCODING) as lines:
            yield from lines


def refuse_what_is_no_file(path: Path, *, streams: bool = False) -> None:
    """A named pipe would be waited for without end, and a device may have no end.

    Raises:
        OSError, ValueError: there is nothing, or something that is no file; see `text_of`.
    """
    mode = os.stat(path).st_mode
    if streams and _INHERITED.fullmatch(str(path)) and not stat.S_ISDIR(mode):
        return
    for is_one, kind in _KINDS:
        if is_one(mode):
            raise ValueError(f"it is {kind}, not a file")


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(error.strerror) from None
