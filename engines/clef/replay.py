"""Backbone and head as work that can be recorded: shapes padded into buckets, results cut back."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from engines.clef.backbone import stretch_of
from engines.clef.crossing import sent
from engines.clef.graphs import MOST_KEYS, MOST_TOKENS_AFTER, Recorder, up, up_to_power
from engines.clef.head import Evidence, Memory
from engines.clef.layers import Stretch, Turn, turn
from engines.clef.model import Model
from engines.clef.past import Past

_PAST_BUCKETS = 4
"""Lengths of what was read before are padded to a multiple of so many buckets."""
_OPTIONS = 8
"""Options are padded to a multiple of this."""


class Replay:
    """One model's computation: as it comes, or replayed where its shape was recorded before."""

    def __init__(self, model: Model, bucket_tokens: int, recorder: Recorder | None) -> None:
        """Without a recorder everything is computed as it comes, unpadded."""
        self._model = model
        self._bucket = bucket_tokens
        self._recorder = recorder

    def hidden(
        self, embedded: Tensor, positions: Tensor, lengths: Sequence[int], past: Past | None
    ) -> Tensor:
        """[rows, tokens, hidden] of rows after what they have read, which ends here."""
        model = self._model
        if self._recorder is None or not self._small(embedded, past):
            stretch = self._stretch(positions, lengths, past)
            hidden: Tensor = model.backbone(embedded, stretch, past, model.kernels, ends=True)[0]
            return hidden
        rows = up_to_power(embedded.shape[0])
        wide = past and _widened(past, rows, up(past.width, _PAST_BUCKETS * self._bucket))
        given = self._inputs(embedded, positions, lengths, wide)
        count = len(wide.keys) if wide else 0
        if wide:
            given += [*wide.keys, *wide.values, *wide.convolved, *wide.memories]

        def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
            before = _past(given[6:], count) if count else None
            mask = given[5] if count else None
            stretch = Stretch(Turn(given[1], given[2]), given[3], given[4], mask)
            return (model.backbone(given[0], stretch, before, model.kernels, ends=True)[0],)

        found = self._recorder.run("after" if wide else "alone", work, given)[0]
        return found[: embedded.shape[0], : embedded.shape[1]]

    def hidden_and_past(
        self,
        embedded: Tensor,
        positions: Tensor,
        lengths: Sequence[int],
        past: Past | None,
        *,
        record: bool = True,
    ) -> tuple[Tensor, Past]:
        """The same, and what it takes to go on; only what begins here can be recorded."""
        before = past.lengths if past else (0,) * len(lengths)
        total = tuple(old + new for old, new in zip(before, lengths, strict=True))
        recordable = record and past is None and self._small(embedded, None)
        if self._recorder is None or not recordable:
            model = self._model
            stretch = self._stretch(positions, lengths, past)
            hidden, after = model.backbone(embedded, stretch, past, model.kernels)
            return hidden, replace(after, lengths=total)
        inputs = self._inputs(embedded, positions, lengths, None)
        count = len(self._model.backbone.text.linear) - sum(self._model.backbone.text.linear)

        def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
            stretch = Stretch(Turn(given[1], given[2]), given[3], given[4], None)
            hidden, after = self._model.backbone(given[0], stretch, None, self._model.kernels)
            return hidden, *after.keys, *after.values, *after.convolved, *after.memories

        found = self._recorder.run("from the start", work, inputs)
        rows, tokens = embedded.shape[:2]
        after = _past([one[:rows] for one in found[1:]], count)
        keys = tuple(one[:, :, :tokens] for one in after.keys)
        values = tuple(one[:, :, :tokens] for one in after.values)
        return found[0][:rows, :tokens], replace(after, lengths=total, keys=keys, values=values)

    def scores(self, evidence: Evidence) -> Tensor:
        """float32[p, n]; see `DecisionHead`."""
        rows, tokens = evidence.memory.own.shape[:2]
        shared = evidence.memory.shared
        keys = tokens + (0 if shared is None else shared.shape[1])
        if self._recorder is None or not self._fits(rows, tokens, keys):
            scores: Tensor = self._model.head(evidence)
            return scores
        wide = _padded_evidence(evidence, self._bucket)
        common = [] if wide.memory.shared is None else [wide.memory.shared]
        seen = wide.memory.seen
        given = [
            wide.memory.own,
            *([] if seen is None else [seen]),
            *(wide.last, wide.questions, wide.options, wide.words, wide.types, wide.asker),
            *common,
        ]

        def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
            memory = Memory(given[8] if len(given) > 8 else None, given[0], given[1])
            return (self._model.head(Evidence(memory, *given[2:8])),)

        found = self._recorder.run("head", work, given)[0]
        return found[: evidence.types.shape[0], : evidence.asker.shape[1]]

    def clear(self) -> None:
        """Let go of every recording."""
        if self._recorder is not None:
            self._recorder.clear()

    def _stretch(self, positions: Tensor, lengths: Sequence[int], past: Past | None) -> Stretch:
        """What is read as it comes, unpadded where nothing has to be."""
        model = self._model
        there = sent(positions, model.device)
        return stretch_of(turn(model.backbone.text.rotary, there, model.dtype), lengths, past)

    def _small(self, embedded: Tensor, past: Past | None) -> bool:
        """Whether it is to be recorded; what is remembered before it, if anything, counts too."""
        rows, tokens = self._padded_size(embedded)
        if past is None:
            return self._fits(rows, tokens, tokens)
        most = 0 if self._recorder is None else self._recorder.max_bytes
        copied = past.bytes // len(past.lengths) * rows
        short = rows * tokens <= MOST_TOKENS_AFTER and copied <= most
        return short and self._fits(rows, tokens, tokens + past.width)

    def _fits(self, rows: int, tokens: int, keys: int) -> bool:
        """Whether launching counts, and copying the keys does not."""
        most = 0 if self._recorder is None else self._recorder.max_tokens
        return rows * tokens <= most and rows * keys <= MOST_KEYS

    def _padded_size(self, embedded: Tensor) -> tuple[int, int]:
        return up_to_power(embedded.shape[0]), up(embedded.shape[1], self._bucket)

    def _inputs(
        self, embedded: Tensor, positions: Tensor, lengths: Sequence[int], past: Past | None
    ) -> list[Tensor]:
        """Hidden states, cosines, sines, which tokens count, how many, and the mask if any."""
        rows, tokens = self._padded_size(embedded)
        count, width = embedded.shape[:2]
        embedded = functional.pad(embedded, (0, 0, 0, tokens - width, 0, rows - count))
        positions = functional.pad(positions, (0, tokens - width, 0, rows - count))
        rotary, dtype = self._model.backbone.text.rotary, self._model.dtype
        place = turn(rotary, sent(positions, self._model.device), dtype)
        all_lengths = [*lengths, *[1] * (rows - count)]
        stretch = stretch_of(place, all_lengths, past, always=True)
        masks = [stretch.valid, stretch.ends, stretch.mask]
        return [embedded, place.cos, place.sin, *(one for one in masks if one is not None)]


def _past(tensors: Sequence[Tensor], full: int) -> Past:
    """From keys, values, last inputs and memories in that order; `full` layers have keys."""
    linear = (len(tensors) - 2 * full) // 2
    ends = [full, 2 * full, 2 * full + linear]
    return Past(
        (),
        tuple(tensors[: ends[0]]),
        tuple(tensors[ends[0] : ends[1]]),
        tuple(tensors[ends[1] : ends[2]]),
        tuple(tensors[ends[2] :]),
    )


def _widened(past: Past, rows: int, width: int) -> Past:
    """More rows, which have read nothing, and longer ones."""
    more = rows - len(past.lengths)

    def wide(tensors: Sequence[Tensor], padding: tuple[int, ...]) -> tuple[Tensor, ...]:
        return tuple(functional.pad(one, (*padding, 0, more)) for one in tensors)

    longer = (0, 0, 0, width - past.width, 0, 0)
    return Past(
        (*past.lengths, *[0] * more),
        wide(past.keys, longer),
        wide(past.values, longer),
        wide(past.convolved, (0, 0, 0, 0)),
        wide(past.memories, (0, 0, 0, 0, 0, 0)),
    )


def _padded_evidence(evidence: Evidence, bucket: int) -> Evidence:
    """More prompts, questions, options and tokens, none of which counts."""
    prompts, questions = evidence.types.shape
    options = evidence.asker.shape[1]
    p, q = up_to_power(prompts) - prompts, up_to_power(questions) - questions
    n = up(options, _OPTIONS) - options
    asker = torch.where(evidence.asker == questions, questions + q, evidence.asker)
    asker = functional.pad(asker, (0, n, 0, p), value=questions + q)
    return Evidence(
        _padded_memory(evidence.memory, p, bucket),
        functional.pad(evidence.last, (0, 0, 0, p)),
        functional.pad(evidence.questions, (0, 0, 0, q, 0, p)),
        functional.pad(evidence.options, (0, 0, 0, n, 0, p)),
        functional.pad(evidence.words, (0, 0, 0, n, 0, p)),
        functional.pad(evidence.types, (0, q, 0, p)),
        asker,
    )


def _padded_memory(memory: Memory, more: int, bucket: int) -> Memory:
    """The rows of padding see every token: what they make of them is cut off again."""
    own, shared = memory.own, memory.shared
    before = 0 if shared is None else shared.shape[1]
    longer = up(own.shape[1], bucket) - own.shape[1]
    wider = up(before, _PAST_BUCKETS * bucket) - before
    seen = memory.seen
    if seen is None:
        seen = torch.ones(own.shape[0], before + own.shape[1], dtype=torch.bool, device=own.device)
    first = functional.pad(seen[:, :before], (0, wider))
    rest = functional.pad(seen[:, before:], (0, longer))
    seen = functional.pad(torch.cat((first, rest), 1), (0, 0, 0, more), value=True)
    return Memory(
        None if shared is None else functional.pad(shared, (0, 0, 0, wider)),
        functional.pad(own, (0, 0, 0, longer, 0, more)),
        seen,
    )
