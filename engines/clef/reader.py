"""From prompts to logits: states once, questions on top of them, in batches bounded by tokens."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from engines.clef.crossing import placed
from engines.clef.evidence import Intake, Places, evidence, places
from engines.clef.graphs import CudaGraphs, Recorder
from engines.clef.head import Memory
from engines.clef.model import Model
from engines.clef.past import stacked
from engines.clef.plan import key_bytes, memory_bytes, state_bytes
from engines.clef.positions import after, following, positions_of
from engines.clef.prefixes import Prefix, Prefixes
from engines.clef.prompt import Opening, Prompt
from engines.clef.replay import Replay
from engines.clef.room import Room, unlimited
from engines.clef.settings import ClefSettings
from engines.clef.steps import Row, Steps

Logits = tuple[tuple[float, ...], ...]
"""Per question of a prompt, one per option, in the encoder's order."""

_KEYS_PER_TOKEN = 8
"""Keys that rows of one batch may attend to, in times of the batch's tokens."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """A prompt, and its opening if that has been read already."""

    at: int
    prompt: Prompt
    prefix: Prefix | None

    @property
    def tokens(self) -> int:
        """To be read now."""
        return len(self.prompt.schema) if self.prefix else self.prompt.tokens

    @property
    def keys(self) -> int:
        """That its tokens attend to."""
        return self.tokens + (len(self.prefix) if self.prefix else 0)

    @property
    def begin(self) -> int:
        """Where among the tokens that are read now its schema begins."""
        return 0 if self.prefix else len(self.prompt.opening.ids)

    def row(self) -> Row:
        """Its tokens with their positions."""
        prompt = self.prompt
        if self.prefix is not None:
            return Row(prompt.schema, after(self.prefix.following, len(prompt.schema)))
        before = positions_of(prompt.opening)
        places = torch.cat((before, after(following(before), len(prompt.schema))), 1)
        return Row(prompt.ids, places, prompt.opening)


class Reader:
    """Reads prompts with one model. For one thread at a time."""

    def __init__(
        self,
        model: Model,
        settings: ClefSettings,
        prefixes: Prefixes,
        *,
        room: Room | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Without a room, memory is as large as the settings assume. On a GPU a recorder of CUDA
        graphs is the default, unless the settings say no."""
        room = room or unlimited(settings)
        if recorder is None and settings.graphs and model.device.type == "cuda":
            recorder = Recorder(CudaGraphs(model.device), room.graph_bytes, room.graph_tokens)
        self._model = model
        self._settings = settings
        self._room = room
        self._prefixes = prefixes
        self._replay = Replay(model, settings.bucket_tokens, recorder)
        self._steps = Steps(model, settings, self._replay)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._model.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the numbers it computes with."""
        return self._model.dtype

    def clear(self) -> None:
        """Let go of everything that is only held to be faster: memory is short."""
        self._prefixes.clear()
        self._replay.clear()

    @torch.inference_mode()
    def logits(self, prompts: Sequence[Prompt]) -> list[Logits]:
        """For each prompt: the logits of its questions."""
        found: list[Logits] = [()] * len(prompts)
        with _on(self._model.device):
            for group in self._groups(prompts):
                asked = [prompts[at] for at in group]
                for at, logits in zip(group, self._group(asked), strict=True):
                    found[at] = logits
        return found

    def _groups(self, prompts: Sequence[Prompt]) -> Iterator[list[int]]:
        """Places of the prompts that are read together: as many as their openings have room."""
        askers: dict[bytes, list[int]] = {}
        for at, one in enumerate(prompts):
            askers.setdefault(one.opening.key, []).append(at)
        group: list[int] = []
        held = 0
        for own in askers.values():
            opening = prompts[own[0]].opening
            size = self._bytes(opening) if self._worth_sharing(opening, len(own)) else 0
            if group and held + size > self._room.openings_bytes:
                yield group
                group, held = [], 0
            group += own
            held += size
        if group:
            yield group

    def _group(self, prompts: Sequence[Prompt]) -> list[Logits]:
        prefixes = self._openings(prompts)
        asking = [_Asking(at, one, prefixes.get(one.opening.key)) for at, one in enumerate(prompts)]
        found: list[Logits] = [()] * len(prompts)
        for batch in self._batches(asking):
            for one, logits in zip(batch, self._asked(batch), strict=True):
                found[one.at] = logits
        return found

    def _bytes(self, opening: Opening) -> int:
        """What is held of an opening that was read."""
        precision, text = self._settings.precision, self._model.backbone.text
        per_token = key_bytes(text, precision) + memory_bytes(self._model.head.shape, precision)
        return len(opening.ids) * per_token + state_bytes(text, precision)

    def _openings(self, prompts: Sequence[Prompt]) -> dict[bytes, Prefix]:
        """Every opening that is better read by itself, read if it was not read before."""
        found: dict[bytes, Prefix] = {}
        missing: dict[bytes, Opening] = {}
        asked = Counter(prompt.opening.key for prompt in prompts)
        for opening in {prompt.opening.key: prompt.opening for prompt in prompts}.values():
            kept = self._prefixes.get(opening.key) if self._worth_keeping(opening) else None
            if kept is not None:
                found[opening.key] = kept
            elif self._worth_sharing(opening, asked[opening.key]):
                missing[opening.key] = opening
        for openings in self._by_length(list(missing.values())):
            for opening, prefix in zip(openings, self._read_openings(openings), strict=True):
                if self._worth_keeping(opening):
                    self._prefixes.keep(opening.key, prefix)
                found[opening.key] = prefix
        return found

    def _worth_keeping(self, opening: Opening) -> bool:
        long_enough = len(opening.ids) >= self._settings.cache_from_tokens
        return long_enough and self._bytes(opening) <= self._prefixes.max_bytes

    def _worth_sharing(self, opening: Opening, askers: int) -> bool:
        """In deterministic mode how many ask must make no difference."""
        shared = askers > 1 or self._settings.deterministic
        long_enough = len(opening.ids) >= self._settings.prefix_from_tokens
        return (shared and long_enough) or self._worth_keeping(opening)

    def _by_length(self, openings: list[Opening]) -> Iterator[list[Opening]]:
        """Openings of about one length together, those that take several chunks alone."""
        batch: list[Opening] = []
        for opening in sorted(openings, key=lambda one: len(one.ids)):
            width = len(opening.ids)
            alone = self._settings.deterministic or width > self._settings.chunk_tokens
            if batch and (alone or (len(batch) + 1) * width > self._room.batch_tokens):
                yield batch
                batch = []
            batch.append(opening)
        if batch:
            yield batch

    def _read_openings(self, openings: Sequence[Opening]) -> list[Prefix]:
        rows = [Row(one.ids, positions_of(one), one) for one in openings]
        nothing = torch.zeros(len(rows), 0, 2, dtype=torch.int64, device=self._model.device)
        counts = tuple(len(one.ids) for one in openings)
        where = Places(nothing, placed(counts, self._model.device), 0, counts)
        intake = Intake(self._model.head, where)
        past = self._steps.read(rows, intake)
        memory = intake.memory()
        return [
            Prefix(
                past.row(at) if len(rows) > 1 else past,
                memory[at : at + 1, : len(row.ids)].clone(),
                following(row.positions),
            )
            for at, row in enumerate(rows)
        ]

    def _batches(self, asking: Sequence[_Asking]) -> Iterator[list[_Asking]]:
        """Those on the same opening together, then by length, as many as the budgets allow."""
        budget = self._room.batch_tokens
        batch: list[_Asking] = []
        for one in sorted(
            asking, key=lambda each: (len(each.prefix or ()), id(each.prefix), each.tokens)
        ):
            alone = self._settings.deterministic or one.tokens > self._settings.chunk_tokens
            rows = [*batch, one]
            tokens = len(rows) * max(each.tokens for each in rows)
            keys = len(rows) * max(each.keys for each in rows)
            mixed = bool(batch) and (batch[0].prefix is None) != (one.prefix is None)
            much = tokens > budget or keys > _KEYS_PER_TOKEN * budget or not self._holds(rows)
            if batch and (alone or mixed or much):
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch

    def _holds(self, rows: Sequence[_Asking]) -> bool:
        """Whether there is room for their openings beside each other, if they are several."""
        prefixes = [one.prefix for one in rows if one.prefix is not None]
        if all(one is prefixes[0] for one in prefixes):
            return True  # one that all share is not copied
        return len(prefixes) * max(one.bytes for one in prefixes) <= self._room.openings_bytes

    def _asked(self, batch: Sequence[_Asking]) -> list[Logits]:
        prompts = [one.prompt for one in batch]
        prefixes = [one.prefix for one in batch if one.prefix is not None]
        where = places(prompts, [one.begin for one in batch], self._model.device)
        intake = Intake(self._model.head, where)
        past = None
        if prefixes:
            past = stacked([one.past for one in prefixes], max(map(len, prefixes)))
        self._steps.ask([one.row() for one in batch], past, intake)
        memory = _memory(prefixes, intake.memory(), where)
        scores = self._replay.scores(evidence(prompts, intake, memory, self._model.words))
        return [_logits(one, row) for one, row in zip(prompts, scores.tolist(), strict=True)]


def _memory(prefixes: Sequence[Prefix], own: Tensor, where: Places) -> Memory:
    """What the head remembers of a batch: of a common opening once."""
    even = min(where.counts) == own.shape[1]
    seen = torch.arange(own.shape[1], device=own.device) < where.lengths[:, None]
    if not prefixes:
        return Memory(None, own, None if even else seen)
    if all(one is prefixes[0] for one in prefixes):
        before = seen.new_ones(len(own), len(prefixes[0]))
        return Memory(prefixes[0].memory, own, None if even else torch.cat((before, seen), 1))
    width = max(map(len, prefixes))
    rows = [functional.pad(one.memory, (0, 0, 0, width - len(one))) for one in prefixes]
    counts = placed([len(one) for one in prefixes], own.device)
    before = torch.arange(width, device=own.device) < counts[:, None]
    return Memory(None, torch.cat((torch.cat(rows), own), 1), torch.cat((before, seen), 1))


def _on(device: torch.device) -> AbstractContextManager[Any]:
    """The device that kernels are launched on which do not look where their tensors are."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _logits(prompt: Prompt, scores: Sequence[float]) -> Logits:
    """One row of the head's output, shared out among the questions."""
    found, at = [], 0
    for question in prompt.questions:
        found.append(tuple(scores[at : at + len(question.options)]))
        at += len(question.options)
    return tuple(found)
