"""Clef-flash as an engine: questions on top of a state that is read once, or all in one prompt."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engines.clef.appetite import appetite
from engines.clef.checkpoint import load
from engines.clef.failures import kind_of, relieve
from engines.clef.images import Sight, picture, sight
from engines.clef.keeper import Keeper
from engines.clef.model import opened
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Limits, Prompt, Subject, prompt
from engines.clef.reader import Logits, Reader
from engines.clef.rendering import Worded, rendered, worded
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens
from engines.clef.weights import Progress, fingerprint
from engines.contract import (
    Broken,
    Busy,
    Engine,
    Facts,
    Health,
    Inquiry,
    Question,
    Reading,
    Reason,
    Unreadable,
    prepared_each,
)

NEUTRAL = "decision"
"""The id that isolated questions have in their prompt, whatever their asker calls them."""

_ENCODING = 1
"""Counts up whenever the same inquiry would make another prompt."""


@dataclass(frozen=True, slots=True)
class _Piece:
    prompt: Prompt
    names: tuple[str, ...]
    """The asker's ids, in the order of the prompt's questions."""

    @property
    def tokens(self) -> int:
        """What reading it costs, if nothing of it was read before."""
        return self.prompt.tokens


@dataclass(frozen=True, slots=True)
class _Loaded:
    reader: Reader
    prefixes: Prefixes


class ClefEngine(Engine[_Piece]):
    """Reads questions with one Clef-flash checkpoint on one device."""

    def __init__(
        self,
        settings: ClefSettings,
        *,
        progress: Progress | None = None,
        neutral: str = NEUTRAL,
    ) -> None:
        """Loads the checkpoint onto the device.

        Raises:
            CheckpointError: it cannot be served; says why.
            DeviceError: the device is missing or too small.
            ImportError: a package of the extra `clef` is not installed.
        """
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._settings = settings
        self._neutral = neutral
        self._checkpoint = load(settings.path, images=settings.max_images > 0)
        vision = self._checkpoint.vision
        self._sight: Sight | None = None if vision is None else sight(settings.path, vision)
        self._tokens = Tokens(self._checkpoint, harden=settings.harden)
        self._limits = Limits(
            min(settings.max_tokens, self._checkpoint.text.positions),
            settings.max_state_tokens,
            settings.on_overflow == "truncate",
        )
        self._counts: Counter[str] = Counter()
        self._facts = self._own_facts()
        self._keeper = Keeper(lambda: self._load(progress), settings.keep_alive_s, dropped=relieve)

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def health(self) -> Health:
        return Health(self._keeper.state, dict(self._counts))

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        """One piece per question, or one for all of them with `reading = "joint"`.

        Raises:
            Unreadable: a prompt is too long, or an image cannot be seen.
            Loading: the engine rests, and begins to load.
        """
        self._keeper.want()
        pictures = self._pictures(inquiry)
        state = self._tokens.state(rendered(inquiry.state), self._limits.max_tokens)
        subject = Subject(state, pictures)
        if self._settings.reading == "joint":
            asked = {name: worded(question) for name, question in inquiry.questions.items()}
            return [self._piece(subject, asked, tuple(asked))]

        def isolated(name: str, question: Question) -> _Piece:
            return self._piece(subject, {self._neutral: worded(question)}, (name,))

        return prepared_each(inquiry.questions, isolated)

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        """For each piece: its questions' readings. Weights may be infinite or NaN; lanes look.

        Raises:
            Busy: the device has too little memory, even for half of the batch.
            Broken: the device is lost.
        """
        with self._keeper.using() as loaded:
            try:
                found = self._logits(loaded, [piece.prompt for piece in batch])
            except RuntimeError as error:
                if kind_of(error) == "lost":
                    self._keeper.lose()
                    self._counts["lost"] += 1
                    raise Broken("the device of the model is lost") from error
                raise
            for piece, logits in zip(batch, found, strict=True):
                if not all(math.isfinite(weight) for own in logits for weight in own):
                    self._counts["not finite"] += 1
                    loaded.prefixes.drop(piece.prompt.opening.key)
            self._counts["prefix hits"] = loaded.prefixes.hits
            self._counts["prefix misses"] = loaded.prefixes.misses
        return [_readings(piece, own) for piece, own in zip(batch, found, strict=True)]

    def close(self) -> None:
        """Lets go of weights and device memory."""
        self._keeper.close()
        relieve()

    def _load(self, progress: Progress | None) -> _Loaded:
        prefixes = Prefixes(self._settings.prefix_cache_bytes)
        model = opened(self._checkpoint, self._settings, progress)
        return _Loaded(Reader(model, self._settings, prefixes), prefixes)

    def _logits(self, loaded: _Loaded, prompts: Sequence[Prompt]) -> list[Logits]:
        """The logits of each prompt; out of memory, in two halves once more."""
        found = self._unless_too_much(loaded, prompts)
        if found is not None:
            return found
        middle = (len(prompts) + 1) // 2
        halves = [half for half in (prompts[:middle], prompts[middle:]) if half]
        parts = [self._unless_too_much(loaded, half) for half in halves]
        found = [one for part in parts if part is not None for one in part]
        if len(found) < len(prompts):
            raise Busy("the model's device is short of memory", retry_after_s=1.0)
        return found

    def _unless_too_much(self, loaded: _Loaded, prompts: Sequence[Prompt]) -> list[Logits] | None:
        """Their logits; `None` if memory was too short, of which there is more then."""
        try:
            return loaded.reader.logits(prompts)
        except RuntimeError as error:
            if kind_of(error) != "memory":
                raise
        self._counts["out of memory"] += 1
        loaded.prefixes.clear()
        relieve()
        return None

    def _pictures(self, inquiry: Inquiry) -> tuple[Any, ...]:
        if not inquiry.assets:
            return ()
        if self._sight is None:
            raise Unreadable("this model cannot see images here", reason=Reason.IMAGES)
        if len(inquiry.assets) > self._settings.max_images:
            most = self._settings.max_images
            raise Unreadable(f"at most {most} images are seen at once", reason=Reason.IMAGES)
        return tuple(picture(asset, self._sight) for asset in inquiry.assets.values())

    def _piece(
        self, subject: Subject, asked: Mapping[str, Worded], names: tuple[str, ...]
    ) -> _Piece:
        asker = names[0] if len(names) == 1 else None
        made = prompt(self._tokens, subject, asked, self._limits, asker)
        pad = self._tokens.image_pad
        shown = sum(one.tokens for one in subject.pictures)
        if subject.pictures and made.ids.count(pad) != shown:
            raise Unreadable(
                "a text holds the token that stands for an image", reason=Reason.IMAGES
            )
        return _Piece(made, names)

    def _own_facts(self) -> Facts:
        settings = self._settings
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{fingerprint(self._checkpoint)} {self._checkpoint.text_digest}".encode())
        silent = replace(
            settings, path=Path(), device="", threads=0, keep_alive_s=0.0, prefix_cache_bytes=0
        )
        digest.update(repr((_ENCODING, self._neutral, astuple(silent))).encode())
        return Facts(
            model=f"{settings.path.resolve().name}-{settings.precision}",
            digest=digest.hexdigest(),
            max_tokens=self._limits.max_tokens,
            images=self._sight is not None,
            joint=settings.reading == "joint",
            native_confidence="top",
            notes="A Clef-flash checkpoint: long states, images, many options.",
            appetite=appetite(
                self._tokens,
                self._neutral,
                named=settings.reading == "joint",
                pictures=0 if self._sight is None else self._limits.max_tokens,
            ),
        )


def _readings(piece: _Piece, logits: Logits) -> dict[str, Reading]:
    """Logits in the asker's order of labels; the prompt's tokens shared out among its questions."""
    prompt, count = piece.prompt, len(piece.names)
    readings = {}
    for at, (name, asked, own) in enumerate(
        zip(piece.names, prompt.questions, logits, strict=True)
    ):
        weights = [0.0] * len(own)
        for label, logit in zip(asked.labels, own, strict=True):
            weights[label] = logit
        tokens = prompt.tokens // count + (at < prompt.tokens % count)
        doubt = "truncated" if prompt.cut else None
        readings[name] = Reading(weights, tokens, doubt=doubt, cut=prompt.cut)
    return readings


def clef_engine(*, progress: Progress | None = None, **options: Any) -> ClefEngine:
    """The engine of an `[engines.<name>]` table on one device: the fields of `ClefSettings`.

    Raises:
        CheckpointError, DeviceError, ImportError: see `ClefEngine`.
    """
    path = Path(options.pop("path"))
    return ClefEngine(ClefSettings(path=path, **options), progress=progress)
