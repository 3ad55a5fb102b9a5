"""Laya as an engine: one piece per question, each on the checkpoint that reads its language."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, assert_never

from engines.appetite import Appetite
from engines.contract import (
    Choice,
    Cut,
    Engine,
    Facts,
    Inquiry,
    Kind,
    Noul,
    Question,
    Reading,
    Reason,
    Score,
    Unreadable,
    kind_of,
    prepared_each,
)
from engines.laya import tournament
from engines.laya.artifact import Precision
from engines.laya.desk import Desk, opened
from engines.laya.language import Languages, Verdict, hinted
from engines.laya.overflow import refuse_losses, refuse_unfit
from engines.laya.rows import Row, State
from engines.laya.settings import LayaSettings
from engines.laya.tensors import CheckpointError
from engines.laya.wording import Wording, wording

_ENCODING = 2
"""Counts up whenever the same inquiry would make other rows."""


@dataclass(frozen=True, slots=True)
class _Single:
    """A question that is one row."""

    row: Row

    @property
    def tokens(self) -> int:
        return len(self.row.ids)


@dataclass(frozen=True, slots=True)
class _Contest:
    """A question whose options meet in groups."""

    wording: Wording
    state: State
    tokens: int
    """Of all rows, at most about."""


@dataclass(frozen=True, slots=True)
class _Piece:
    name: str
    kind: Kind
    desk: Desk
    play: _Single | _Contest

    @property
    def tokens(self) -> int:
        """What reading it costs."""
        return self.play.tokens


class LayaEngine(Engine[_Piece]):
    """Reads questions with one Laya checkpoint, or with two: English and everything else."""

    def __init__(self, settings: LayaSettings) -> None:
        """Opens the checkpoints, importing them if that has not happened yet.

        Raises:
            CheckpointError: a checkpoint cannot be served.
            DeviceError: the device is missing.
        """
        self._settings = settings
        self._main = opened(settings.path, settings)
        second = settings.multilingual_path
        self._multilingual = None if second is None else opened(second, settings)
        if self._multilingual is not None and self._multilingual.checkpoint.english_only:
            raise CheckpointError(f"{second}: multilingual_path names an English checkpoint")
        detects = settings.language == "detect" and self._main.checkpoint.english_only
        self._languages = Languages() if detects else None
        self._facts = self._own_facts()

    @property
    def facts(self) -> Facts:
        return self._facts

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        """One piece per question; nothing is ever truncated unless the settings say so.

        Raises:
            Unreadable: with the reason and, as a rule, the question it concerns.
        """
        if inquiry.assets:
            raise Unreadable("this model cannot see images", reason=Reason.IMAGES)
        hint = hinted(inquiry.language)
        hint_decides = hint != "undecided"
        spoken = hint if hint_decides else self._verdict(inquiry.state)
        states: dict[int, State] = {}

        def piece(name: str, question: Question) -> _Piece:
            asked = "undecided" if hint_decides else self._verdict(_said(question))
            desk = self._desk(name, spoken, asked)
            state = states.get(id(desk))
            if state is None:
                state = states[id(desk)] = desk.state(inquiry.state)
            return self._piece(name, question, desk, state)

        return prepared_each(inquiry.questions, piece)

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        """For each piece: its question's reading."""
        singles: dict[int, list[int]] = {}
        for at, piece in enumerate(batch):
            if isinstance(piece.play, _Single):
                singles.setdefault(id(piece.desk), []).append(at)
        found: dict[int, Reading] = {}
        for places in singles.values():
            found.update(self._read_rows(batch, places))
        for at, piece in enumerate(batch):
            if isinstance(piece.play, _Contest):
                weights, rows = piece.desk.played(
                    piece.play.wording, piece.play.state, self._settings.tournament
                )
                found[at] = _reading(piece.kind, weights, rows)
        return [{piece.name: found[at]} for at, piece in enumerate(batch)]

    def close(self) -> None:
        """Sessions end with the engine."""

    def _read_rows(self, batch: Sequence[_Piece], places: Sequence[int]) -> dict[int, Reading]:
        """Readings of single rows of one desk, by their place in the batch."""
        rows = [play.row for at in places if isinstance(play := batch[at].play, _Single)]
        weights = batch[places[0]].desk.log_weights(rows)
        return {
            at: _reading(batch[at].kind, own, [row])
            for at, row, own in zip(places, rows, weights, strict=True)
        }

    def _verdict(self, content: object) -> Verdict:
        return "english" if self._languages is None else self._languages.verdict(content)

    def _desk(self, name: str, spoken: Verdict, asked: Verdict) -> Desk:
        """Who reads a question: decided by the state and this question alone."""
        if self._languages is None:
            return self._main
        if spoken != "foreign" and asked != "foreign":
            sure = "english" in (spoken, asked)
            return self._main if sure or self._multilingual is None else self._multilingual
        if self._multilingual is None:
            raise Unreadable("this model reads English only", reason=Reason.LANGUAGE, question=name)
        return self._multilingual

    def _piece(self, name: str, question: Question, desk: Desk, state: State) -> _Piece:
        worded = wording(question)
        row = desk.row(worded, state)
        lossy = len(row.markers) < row.options or row.losses.shortened or row.losses.merged
        group = self._settings.tournament
        play: _Single | _Contest = _Single(row)
        if lossy and isinstance(question, Choice) and 0 < group < len(question.options):
            play = self._contest(name, worded, desk, state)
        elif self._settings.on_overflow == "refuse":
            refuse_losses(name, row, desk.budget)
        else:
            refuse_unfit(name, row, desk.budget)
        return _Piece(name, kind_of(question), desk, play)

    def _contest(self, name: str, worded: Wording, desk: Desk, state: State) -> _Contest:
        refuse = refuse_losses if self._settings.on_overflow == "refuse" else refuse_unfit
        tokens = 0
        for part in tournament.rounds(worded, self._settings.tournament, desk.weight_of):
            row = desk.row(part, state)
            refuse(name, row, desk.budget)
            tokens += len(row.ids)
        return _Contest(worded, state, tokens)

    def _own_facts(self) -> Facts:
        desks = [self._main] + ([self._multilingual] if self._multilingual else [])
        digest = hashlib.blake2b(digest_size=16)
        for desk in desks:
            digest.update(f"{desk.weights_digest} {desk.checkpoint.text_digest}".encode())
        digest.update(repr((_ENCODING, astuple(self._settings)[2:])).encode())
        return Facts(
            model="+".join(_name(desk, self._settings.precision) for desk in desks),
            digest=digest.hexdigest(),
            max_tokens=max(desk.budget.max_len for desk in desks),
            device=self._main.device,
            native_confidence="entropy",
            notes="A Laya checkpoint: yes/no, choices and scores, one short text per question.",
            appetite=Appetite(group=self._settings.tournament),
        )


def _name(desk: Desk, precision: Precision) -> str:
    """The directory's name; an export keeps the precision it came with, whatever the settings."""
    checkpoint = desk.checkpoint
    named = checkpoint.directory.resolve().name
    return named if checkpoint.encoder is None else f"{named}-{precision}"


def _said(question: Question) -> list[object]:
    """What the asker wrote in the question: instructions, options and what these mean."""
    match question:
        case Noul():
            return [question.instructions, question.true, question.false]
        case Choice():
            return [question.instructions, *question.options, *question.options.values()]
        case Score():
            return [question.instructions, *question.levels]
        case _:
            assert_never(question)


def _reading(kind: Kind, weights: list[float], rows: Sequence[Row]) -> Reading:
    """Laya's order for a noul is [false, true], the contract's the other way round."""
    tokens = sum(len(row.ids) for row in rows)
    dropped = sum(row.losses.total for row in rows)
    return Reading(
        weights[::-1] if kind == "noul" else weights,
        tokens,
        doubt="truncated" if dropped else None,
        cut=Cut(tokens, dropped) if dropped else None,
    )


def laya_engine(**options: Any) -> LayaEngine:
    """The engine of an `[engines.<name>]` table: the fields of `LayaSettings`, paths as strings.

    Raises:
        CheckpointError, DeviceError: see `LayaEngine`.
    """
    paths = {
        name: Path(options[name]) if options.get(name) else None
        for name in ("path", "multilingual_path")
    }
    return LayaEngine(LayaSettings(**(options | paths)))
