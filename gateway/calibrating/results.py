"""Readings kept in a file, so that a run that was stopped goes on where it was.

One file per engine, named by its digest: readings of other weights are never taken for these. A
line is a reading under the SHA-256 of state and question; no text stands in it. Lines are appended;
one that a crash tore is dropped when the file is opened again.
"""

import fcntl
import json
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType

from gateway.config_file import ConfigError
from gateway.documents import json_tree

_VERSION = 1
_UNWRITTEN = 64
"""Readings that may be lost to a crash."""


@dataclass(frozen=True, slots=True)
class Read:
    """What an engine made of one question."""

    log_weights: tuple[float, ...]
    """One per label; empty where the engine refused."""
    tokens: int = 0
    seconds: float = 0.0
    """Engine time."""
    refused: str | None = None
    """Why the engine cannot read it."""
    doubt: str | None = None
    """Why the engine does not vouch for it."""


class Results:
    """Key → reading, on disk. A context manager; one writer at a time."""

    def __init__(self, directory: Path, digest: str) -> None:
        """Opens or makes the file for an engine of this digest.

        Raises:
            ConfigError: it cannot be opened, another process writes it, or it is something else.
        """
        self.path = directory / f"{digest[:16]}.jsonl"
        self._digest = digest
        self._known: dict[str, Read] = {}
        self._waiting: list[str] = []
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            self._file: FileIO = self.path.open("r+b", buffering=0)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load()
        except OSError:
            self._file.close()
            raise ConfigError(f"{self.path}: another process is writing it") from None
        except ConfigError:
            self._file.close()
            raise

    def __enter__(self) -> "Results":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.write()
        finally:
            self._file.close()

    def get(self, key: str) -> Read | None:
        """What is known under the key."""
        return self._known.get(key)

    def put(self, key: str, read: Read) -> None:
        """Keep a reading; on disk at the latest with `write`."""
        self._known[key] = read
        self._waiting.append(_line(key, read))
        if len(self._waiting) >= _UNWRITTEN:
            self.write()

    def write(self) -> None:
        """Append what is not on disk yet.

        Raises:
            ConfigError: it cannot be written; the file holds what was written before.
        """
        end, content = self._file.tell(), "".join(self._waiting).encode()
        try:
            while content:
                content = content[self._file.write(content) :]
        except OSError as error:
            self._file.truncate(end)
            self._file.seek(end)
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror}") from None
        self._waiting.clear()

    def _load(self) -> None:
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            self._file.seek(0)
            self._file.truncate()
            self._waiting.append(json.dumps({"version": _VERSION, "digest": self._digest}) + "\n")
            return
        first, *lines = whole.decode("utf-8", "replace").splitlines()
        try:
            header = json_tree(first)
            if header != {"version": _VERSION, "digest": self._digest}:
                raise ValueError
            self._known = dict(_parsed(line) for line in lines)
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self.path}: not readings of this engine; remove the file to read again"
            ) from None
        self._file.seek(len(whole))
        self._file.truncate()


def _line(key: str, read: Read) -> str:
    said: dict[str, object] = {"key": key, "tokens": read.tokens, "seconds": read.seconds}
    if read.refused is None:
        said["log_weights"] = read.log_weights
    optional = {"refused": read.refused, "doubt": read.doubt}
    said |= {name: value for name, value in optional.items() if value is not None}
    return json.dumps(said) + "\n"


def _parsed(line: str) -> tuple[str, Read]:
    said = json_tree(line)
    weights = tuple(map(float, said.get("log_weights", ())))
    read = Read(weights, said["tokens"], said["seconds"], said.get("refused"), said.get("doubt"))
    return said["key"], read
