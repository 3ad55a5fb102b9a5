"""One opened checkpoint: its texts, its graph, and from a wording to log-weights."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.laya import tournament
from engines.laya.artifact import Artifact, Form, artifact, imported, sha256_of
from engines.laya.checkpoint import Checkpoint, load
from engines.laya.network import (
    BatchNetwork,
    Device,
    DeviceError,
    Logits,
    Network,
    RowNetwork,
    SplitNetwork,
)
from engines.laya.rows import Budget, Row, State, Tokens
from engines.laya.settings import LayaSettings
from engines.laya.tensors import CheckpointError
from engines.laya.wording import Wording

_log = logging.getLogger("tiergate.laya")


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that reading with one checkpoint takes. Thread-safe."""

    checkpoint: Checkpoint
    tokens: Tokens
    network: Network
    budget: Budget
    weights_digest: str
    device: Device = "cpu"
    """Where the network runs."""

    def state(self, state: object) -> State:
        """The state's tokens, of one that no row holds some more than fit."""
        return self.tokens.state(state, self.budget.max_len)

    def row(self, wording: Wording, state: State) -> Row:
        """The wording as a row of this checkpoint."""
        return self.tokens.row(wording, state, self.budget)

    def log_weights(self, rows: Sequence[Row]) -> list[list[float]]:
        """For each row: logits over temperature, in Laya's canonical option order."""
        read = self.network.logits(rows)
        return [self._tempered(row, logits) for row, logits in zip(rows, read, strict=True)]

    def played(self, wording: Wording, state: State, group: int) -> tuple[list[float], list[Row]]:
        """Log-weights after a tournament in groups, and all rows that were read for it."""
        read: list[Row] = []

        def ask(wordings: Sequence[Wording]) -> list[list[float]]:
            rows = [self.row(each, state) for each in wordings]
            read.extend(rows)
            return self.log_weights(rows)

        return tournament.played(wording, group, ask), read

    def weight_of(self, option: str) -> int:
        """Tokens of an option's text; of one longer than Laya reads, at least so many."""
        return len(self.tokens.option(option, self.budget).ids)

    def _tempered(self, row: Row, logits: Logits) -> list[float]:
        temperature = self.checkpoint.temperatures.of(row.kind, row.options)
        slots = [float(logit) / temperature for logit in logits]
        if row.order is None:
            return slots
        canonical = [0.0] * len(slots)
        for slot, option in enumerate(row.order):
            canonical[option] = slots[slot]
        return canonical


def opened(path: Path, settings: LayaSettings) -> Desk:
    """The checkpoint in `path`, imported first if that has not happened yet.

    Raises:
        CheckpointError: it cannot be served; says why.
        DeviceError: the device is missing and no fallback is allowed.
    """
    checkpoint = load(path)
    if settings.device == "cuda" and settings.precision == "int8":
        raise CheckpointError('precision = "int8" is for the CPU; use "fp32" with device = "cuda"')
    device = settings.device
    try:
        network, digest = _network(checkpoint, settings, device)
    except DeviceError as error:
        if not settings.device_fallback:
            raise
        _log.warning("%s; going on with the CPU, many times slower", error)
        device = "cpu"
        network, digest = _network(checkpoint, settings, device)
    return Desk(
        checkpoint,
        Tokens(checkpoint.tokenizer, checkpoint.specials, harden=settings.harden),
        network,
        _budget(checkpoint, settings),
        digest,
        device,
    )


def _budget(checkpoint: Checkpoint, settings: LayaSettings) -> Budget:
    wanted = Budget(
        settings.max_tokens or checkpoint.max_len,
        settings.head_max_tokens or checkpoint.head_max_len,
    )
    encoder = checkpoint.encoder
    if encoder is not None and wanted.max_len > encoder.positions:
        raise CheckpointError(
            f"{checkpoint.directory}: max_tokens is {wanted.max_len}, but the encoder has only "
            f"{encoder.positions} positions"
        )
    return wanted


def _network(checkpoint: Checkpoint, settings: LayaSettings, device: Device) -> tuple[Network, str]:
    """The loaded graph and what identifies its weights."""
    pad = checkpoint.specials.pad
    match checkpoint.exports:
        case (fused,):
            return BatchNetwork(fused, device, pad), sha256_of(fused)
        case (encoder, head):
            digest = hashlib.sha256((sha256_of(encoder) + sha256_of(head)).encode()).hexdigest()
            return SplitNetwork(encoder, head, device, pad), digest
    form: Form = "row" if device == "cpu" else "batch"
    found = artifact(checkpoint, settings.precision, form) or _first_import(
        checkpoint, settings, form
    )
    named = f"{found.manifest.source_sha256} {found.manifest.bits} {found.manifest.drawing}"
    if form == "row":
        return RowNetwork(found.graph), named
    return BatchNetwork(found.graph, device, pad), named


def _first_import(checkpoint: Checkpoint, settings: LayaSettings, form: Form) -> Artifact:
    _log.info("importing %s as %s", checkpoint.directory.name, settings.precision)
    try:
        return imported(checkpoint, settings.precision, form)
    except ImportError as error:
        raise CheckpointError(
            f"{checkpoint.directory}: not imported yet, and importing needs the package onnx; "
            "install the extra laya once, or bring the directory with its import along"
        ) from error
