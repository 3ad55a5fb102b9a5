"""Readings that were asked for before: one question at a time, exact, bounded in bytes.

Only for engines that read each question by itself. Belongs to one event loop, and needs no lock.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Mapping
from dataclasses import replace

import orjson
from cachetools import LRUCache

from engines.contract import Choice, Inquiry, Noul, Question, Reading, Score, Tally
from gateway.plan import Reader

_ENTRY_BYTES = 600
"""About what an entry takes besides its log-weights."""
_WEIGHT_BYTES = 32
_Key = bytes


class Memo:
    """A reader in front of another: what was read before is not read again.

    A question's id is no part of what is remembered; the engine's digest is, which stands for
    weights, settings and calibration. Identical questions that are asked at the same time are
    read once.
    """

    def __init__(
        self, reader: Reader, digest: str, max_bytes: int, *, hits_cost: bool = False
    ) -> None:
        """`digest` is the engine's own, see `engines.contract.Facts`.

        With `hits_cost` what was not read carries the tokens of its first reading, else 0.
        """
        self._reader = reader
        self._digest = digest.encode()
        self._kept: LRUCache[_Key, Reading] = LRUCache(max_bytes, getsizeof=_bytes_of)
        self._coming: dict[_Key, asyncio.Future[None]] = {}
        self._hits_cost = hits_cost
        self.hits = 0
        self.misses = 0

    @property
    def name(self) -> str:
        """The engine's name."""
        return self._reader.name

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        """Question id → reading, for every question of the inquiry, in its order.

        What was not read for this inquiry carries 0 tokens: somebody has paid for it already;
        unless `hits_cost`.

        Raises:
            EngineError: as the reader behind said; nothing is remembered of failures.
        """
        if inquiry.assets:
            return await self._reader.read(inquiry, patience_s=patience_s, tally=tally)
        keys = self._keys(inquiry)
        found: dict[_Key, Reading] = {}
        self._look_up(keys, found)
        self.hits += len(found)
        while any(key not in found for key in keys.values()):
            missing = {name: key for name, key in keys.items() if key not in found}
            elsewhere = {self._coming[key] for key in missing.values() if key in self._coming}
            own = {key: name for name, key in missing.items() if key not in self._coming}
            if own:
                asked = replace(inquiry, questions={n: inquiry.questions[n] for n in own.values()})
                reading = self._reader.read(asked, patience_s=patience_s, tally=tally)
                found |= await self._read_own(reading, own)
            if elsewhere:
                await asyncio.wait(elsewhere)
                self._look_up(missing, found)
        readings = {}
        for name, key in keys.items():
            readings[name] = found[key]
            found[key] = self._again(found[key])  # twins of one inquiry are read once
        return readings

    async def _read_own(
        self, reading: Awaitable[Mapping[str, Reading]], own: Mapping[_Key, str]
    ) -> dict[_Key, Reading]:
        """Read what nobody else is reading, and let others know when that is over."""
        self.misses += len(own)
        over = asyncio.get_running_loop().create_future()
        self._coming |= dict.fromkeys(own, over)
        try:
            readings = await reading
            read = {key: readings[name] for key, name in own.items()}
            for key, one in read.items():
                self._keep(key, one)
        finally:
            for key in own:
                del self._coming[key]
            over.set_result(None)
        return read

    def _look_up(self, keys: Mapping[str, _Key], found: dict[_Key, Reading]) -> None:
        for key in keys.values():
            reading = self._kept.get(key)
            if reading is not None:
                found[key] = reading

    def _keep(self, key: _Key, reading: Reading) -> None:
        if _bytes_of(reading) <= self._kept.maxsize:
            self._kept[key] = self._again(reading)

    def _again(self, reading: Reading) -> Reading:
        """The reading as whoever gets it without having it read pays for it."""
        return reading if self._hits_cost or not reading.tokens else replace(reading, tokens=0)

    def _keys(self, inquiry: Inquiry) -> dict[str, _Key]:
        """Question id → what its reading depends on, hashed. Key order counts: models see it."""
        state = hashlib.blake2b(self._digest, digest_size=16)
        state.update(_exact((inquiry.language, inquiry.state)))
        keys = {}
        for name, question in inquiry.questions.items():
            own = state.copy()
            own.update(_exact(_content(question)))
            keys[name] = own.digest()
        return keys


def _content(question: Question) -> object:
    match question:
        case Noul():
            return ("noul", question.instructions, question.true, question.false)
        case Choice():
            return ("choice", question.instructions, question.options)
        case Score():
            return ("score", question.instructions, question.levels)


def _exact(value: object) -> bytes:
    """JSON with every difference that a model could see: order, 1 and 1.0, nothing sorted."""
    try:
        return orjson.dumps(value)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates
        return json.dumps(value).encode()


def _bytes_of(reading: Reading) -> int:
    return _ENTRY_BYTES + _WEIGHT_BYTES * len(reading.log_weights)
