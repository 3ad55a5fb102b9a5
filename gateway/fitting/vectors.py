"""States to vectors with the shared encoder, remembered in a file so that a run can go on later.

The file holds, one after the other, the SHA-256 of a text and its vector: no text.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.minilm.sentences import DIGEST, WIDTH, Passage, Sentences

Vectors = dict[str, NDArray[np.float32]]
"""Text → float32[384]; without the texts that do not fit the encoder's window."""

_KEY_BYTES = 32
_RECORD_BYTES = _KEY_BYTES + 4 * WIDTH
_AT_ONCE = 64


class Memory:
    """Vectors on disk, of one encoder."""

    def __init__(self, folder: Path | None) -> None:
        """`None` = nothing is remembered. Another encoder has another file in the folder.

        Raises:
            OSError: the folder cannot be made or read.
        """
        self._known: dict[bytes, NDArray[np.float32]] = {}
        self._path: Path | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / f"{DIGEST[:16]}.vectors"
            self._read(self._path)

    def get(self, text: str) -> NDArray[np.float32] | None:
        """The text's vector, if it was added."""
        return self._known.get(_key(text))

    def add(self, found: Vectors) -> None:
        """Remember the vectors, on disk at once.

        Raises:
            OSError: the file cannot be written.
        """
        records = []
        for text, vector in found.items():
            key = _key(text)
            self._known[key] = vector
            records.append(key + vector.astype("<f4").tobytes())
        if self._path is not None and records:
            with self._path.open("ab") as file:
                file.write(b"".join(records))
                file.flush()
                os.fsync(file.fileno())

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        content = path.read_bytes()
        whole = len(content) - len(content) % _RECORD_BYTES
        if whole < len(content):  # a run was killed while it wrote
            with path.open("r+b") as file:
                file.truncate(whole)
        for start in range(0, whole, _RECORD_BYTES):
            key = content[start : start + _KEY_BYTES]
            vector = np.frombuffer(content, "<f4", WIDTH, start + _KEY_BYTES)
            if abs(float(np.linalg.norm(vector)) - 1.0) < 1e-3:
                self._known[key] = vector.astype(np.float32)


def vectors_of(
    texts: Iterable[str],
    memory: Memory,
    *,
    threads: int,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Vectors:
    """The vectors of all texts that fit; `told` how many are done of how many.

    Raises:
        Broken: the encoder's files are not the ones it was measured with.
        OSError: the memory cannot be written.
    """
    wanted = list(dict.fromkeys(texts))
    found = {text: known for text in wanted if (known := memory.get(text)) is not None}
    new = [text for text in wanted if text not in found]
    told(len(found), len(wanted))
    if not new:
        return found
    sentences = Sentences()
    done = len(found)
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            read = pool.map(lambda text: _vector(sentences, text), some)
            fresh = {t: v for t, v in zip(some, read, strict=True) if v is not None}
            memory.add(fresh)
            found |= fresh
            done += len(some)
            told(done, len(wanted))
    sentences.close()
    return found


def _vector(sentences: Sentences, text: str) -> NDArray[np.float32] | None:
    row = sentences.row(text)
    return sentences.vector(Passage(row)) if row.fits else None


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
