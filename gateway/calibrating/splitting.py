"""Which rows calibrate and which certify: never the same, never the same state."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.config_file import ConfigError
from gateway.labelled import Row, answer_key, state_key


@dataclass(frozen=True, slots=True)
class Split:
    """Rows in two parts that share no state."""

    calibrate: tuple[Row, ...]
    """Temperatures, maps and the grid of floors come from these."""
    certify: tuple[Row, ...]
    """Floors are tested on these."""
    repeated: int
    """Questions left out because the same was asked about the same state before."""


def split(rows: Sequence[Row], *, share: float, seed: int) -> Split:
    """About `share` of the states to calibrate, the rest to certify, by a hash of each state.

    The same rows and seed give the same parts in whatever order the rows come.
    """
    once, repeated = without_repeats(rows)
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in once:
        drawn = hashlib.sha256(f"{seed} {state_key(row.state)}".encode()).digest()
        parts[int.from_bytes(drawn[:8], "big") >= share * 2**64].append(row)
    return Split(tuple(parts[0]), tuple(parts[1]), repeated)


def given(calibrate: Sequence[Row], certify: Sequence[Row]) -> Split:
    """The parts as somebody made them.

    Raises:
        ConfigError: a state stands in both; names the places.
    """
    one, in_one = without_repeats(calibrate)
    other, in_other = without_repeats(certify)
    seen = {state_key(row.state): row.place for row in one}
    shared = [row for row in other if state_key(row.state) in seen]
    if shared:
        first = shared[0]
        raise ConfigError(
            f"{first.place}: the state stands in {seen[state_key(first.state)]} too, and "
            f"{len(shared)} states are in both parts: a floor must be tested on rows that nothing "
            "was fitted on; take them out of one part, or give one file and let it be split"
        )
    return Split(tuple(one), tuple(other), in_one + in_other)


def without_repeats(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows without questions that were asked about the same state before, and how many those
    were. A copy is no further evidence; one with a label stands for those without."""
    keys = [{name: answer_key(row, name) for name in row.questions} for row in rows]
    labelled = {of[name] for row, of in zip(rows, keys, strict=True) for name in row.labels}
    seen: set[str] = set()
    kept, repeated = [], 0
    for row, of in zip(rows, keys, strict=True):
        fresh = {}
        for name, question in row.questions.items():
            if of[name] in seen or (of[name] in labelled and name not in row.labels):
                repeated += 1
                continue
            seen.add(of[name])
            fresh[name] = question
        if len(fresh) == len(row.questions):
            kept.append(row)
        elif fresh:
            labels = {name: label for name, label in row.labels.items() if name in fresh}
            kept.append(replace(row, questions=fresh, labels=labels))
    return kept, repeated
