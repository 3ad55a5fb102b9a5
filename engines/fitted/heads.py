"""A head: what a question's labelled examples taught, as two arrays in one file. Never a pickle.

`FINGERPRINT.npz` holds `weights`, float32[labels, 384], `bias`, float32[labels], and `card`, a JSON
object as bytes: which question it reads, on which encoder, and how it was made.
"""

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from engines.contract import Json, Kind
from engines.minilm.sentences import DIGEST, WIDTH

VERSION = 1

Matrix = NDArray[np.float32]


class HeadError(ValueError):
    """A file is not a head that this install can read; the message says which and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """How one question is read: log-weights = weights · vector of the state + bias."""

    fingerprint: str
    """Of the question; see engines/fingerprint.py."""
    kind: Kind
    weights: Matrix
    """float32[labels, 384], labels in the question's order, calibrated: no temperature follows."""
    bias: Matrix
    """float32[labels]."""
    name: str = ""
    """What the labelled file calls the question; for people."""
    encoder: str = DIGEST
    """Digest of the encoder whose vectors it was fitted on."""
    made: Mapping[str, Json] = field(default_factory=dict)
    """How it was made and what was measured; for people."""

    @property
    def digest(self) -> str:
        """SHA-256 over all that its readings depend on, as hex."""
        found = hashlib.sha256(f"{VERSION} {self.fingerprint} {self.encoder}".encode())
        found.update(self.weights.tobytes())
        found.update(self.bias.tobytes())
        return found.hexdigest()

    def log_weights(self, vector: Matrix) -> list[float]:
        """One finite log-weight per label, from a state's vector, float32[384].

        Products are added up in float64 and without a matrix routine, whose rounding may depend
        on where in memory its arguments are.
        """
        sums = (self.weights * vector).sum(axis=1, dtype=np.float64) + self.bias
        return cast(list[float], sums.tolist())


def saved(head: Head, folder: Path) -> Path:
    """The head's file in `folder`, made if need be: the whole new file or the old one, never half.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    card = {
        "version": VERSION,
        "fingerprint": head.fingerprint,
        "kind": head.kind,
        "name": head.name,
        "encoder": head.encoder,
        "made": dict(head.made),
    }
    content = np.frombuffer(json.dumps(card).encode(), dtype=np.uint8)
    path = folder / f"{head.fingerprint}.npz"
    descriptor, draft = tempfile.mkstemp(dir=folder, prefix=".", suffix=".draft")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez_compressed(file, weights=head.weights, bias=head.bias, card=content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)
    return path


def loaded(folder: Path) -> dict[str, Head]:
    """Fingerprint → head for every `*.npz` in `folder`, in the order of the fingerprints.

    Raises:
        HeadError: there is none, one is damaged or of another encoder, or two read one question.
    """
    if not folder.is_dir():
        raise HeadError(f"there is no folder '{folder}'; `tiergate fit` makes one with heads in it")
    heads: dict[str, Head] = {}
    for path in sorted(folder.glob("*.npz")):
        head = read_head(path)
        if head.encoder != DIGEST:
            raise HeadError(
                f"{path.name} was fitted on another encoder ({head.encoder[:12]}) than the one "
                f"installed ({DIGEST[:12]}); fit it again with `tiergate fit`"
            )
        if head.fingerprint in heads:
            raise HeadError(f"{path.name} reads a question that another head reads already")
        heads[head.fingerprint] = head
    if not heads:
        raise HeadError(f"there is no head in '{folder}'; `tiergate fit` puts them there")
    return dict(sorted(heads.items()))


def read_head(path: Path) -> Head:
    """The head in one file, whatever its encoder.

    Raises:
        HeadError: it is not a head.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            card = json.loads(arrays["card"].tobytes())
            head = _head(card, arrays["weights"], arrays["bias"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise HeadError(f"{path.name} is not a head that can be read: {error}") from error
    return head


def _head(card: Mapping[str, Any], weights: Matrix, bias: Matrix) -> Head:
    if card["version"] != VERSION:
        raise ValueError(f"its version is {card['version']}, and this install reads {VERSION}")
    for array, shape in ((weights, (len(bias), WIDTH)), (bias, (len(bias),))):
        if array.dtype != np.float32 or array.shape != shape or not len(array):
            raise ValueError(f"an array is {array.dtype}{list(array.shape)}")
        if not np.isfinite(array).all():
            raise ValueError("it holds a number that is not finite")
    return Head(
        fingerprint=card["fingerprint"],
        kind=card["kind"],
        weights=weights,
        bias=bias,
        name=card["name"],
        encoder=card["encoder"],
        made=card["made"],
    )
