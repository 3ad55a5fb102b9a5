"""Has an engine read labelled rows, several at a time, and remembers what was read."""

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engines.contract import Busy, Inquiry, Tally, Unreadable
from gateway.calibrating.results import Read, Results
from gateway.labelled import Row, answer_key
from gateway.plan import Reader

_AT_A_TIME = 16

Told = Callable[[int], None]
"""Told how many more rows are done."""


async def read_rows(
    reader: Reader, rows: Sequence[Row], results: Results, *, joint: bool, told: Told
) -> list[dict[str, Read]]:
    """For each row: question id → what the engine made of it; known answers are not read again.

    `joint`: whether the engine reads the questions of a row together.

    Raises:
        EngineError: the engine broke; what was read until then is kept.
    """
    left = iter(rows)

    async def work() -> None:
        for row in left:
            await _read_row(reader, row, results, joint)
            told(1)

    workers = [asyncio.ensure_future(work()) for _ in range(_AT_A_TIME)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        results.write()
    return [_known(row, results, joint) for row in rows]


def keys_of(row: Row, *, joint: bool) -> dict[str, str]:
    """Question id → the key its reading is kept under.

    A reading depends on state and question; under a joint engine on the other questions too.
    """
    keys = {name: answer_key(row, name) for name in row.questions}
    if not joint:
        return keys
    company = "\n".join(f"{name} {key}" for name, key in keys.items())
    return {
        name: hashlib.sha256(f"{company}\n{name}".encode()).hexdigest() for name in row.questions
    }


def _known(row: Row, results: Results, joint: bool) -> dict[str, Read]:
    found = {name: results.get(key) for name, key in keys_of(row, joint=joint).items()}
    return {name: read for name, read in found.items() if read is not None}


async def _read_row(reader: Reader, row: Row, results: Results, joint: bool) -> None:
    keys = keys_of(row, joint=joint)
    missing = [name for name, key in keys.items() if results.get(key) is None]
    if not missing:
        return
    wanted = list(keys) if joint else missing
    inquiry = Inquiry(row.state, {name: row.questions[name] for name in wanted})
    for name, read in (await _read(reader, inquiry, joint)).items():
        results.put(keys[name], read)


async def _read(reader: Reader, inquiry: Inquiry, joint: bool) -> Mapping[str, Read]:
    """Every question's reading; asks again without those that cannot be read."""
    refused: dict[str, Read] = {}
    while inquiry.questions:
        tally = Tally()
        try:
            readings = await reader.read(inquiry, patience_s=math.inf, tally=tally)
        except Busy as error:
            await asyncio.sleep(error.retry_after_s)
        except Unreadable as error:
            out = {} if joint else dict(error.of_each)
            if not out:  # the inquiry as a whole
                out = dict.fromkeys(inquiry.questions, error.reason)
            refused |= {name: Read((), refused=why.value) for name, why in out.items()}
            kept = {name: q for name, q in inquiry.questions.items() if name not in refused}
            inquiry = replace(inquiry, questions=kept)
        else:
            seconds = tally.spent_s / len(readings)
            found = {
                name: Read(tuple(map(float, one.log_weights)), one.tokens, seconds, doubt=one.doubt)
                for name, one in readings.items()
            }
            return refused | found
    return refused
