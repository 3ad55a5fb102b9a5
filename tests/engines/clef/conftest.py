"""The tiny checkpoint, opened once; copies of it that a test may spoil."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.clef.checkpoint import Checkpoint, load
from engines.clef.model import Model, opened
from engines.clef.prefixes import Prefixes
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens

from .golden import TINY

Reads = Callable[..., Reader]


@pytest.fixture(scope="session")
def checkpoint() -> Checkpoint:
    """The tiny checkpoint, with its vision tower."""
    return load(TINY)


@pytest.fixture(scope="session")
def tokens(checkpoint: Checkpoint) -> Tokens:
    """The tokenizer as the reference uses it."""
    return Tokens(checkpoint, harden=False)


@pytest.fixture(scope="session")
def model(checkpoint: Checkpoint) -> Model:
    """The tiny checkpoint on the CPU in fp32."""
    return opened(checkpoint, ClefSettings(TINY, device="cpu", precision="fp32"))


@pytest.fixture(scope="session")
def reads(model: Model) -> Reads:
    """A reader of the tiny model with these settings, and a cache of its own."""

    def opened(**options: object) -> Reader:
        settings = ClefSettings(TINY, device="cpu", precision="fp32", **options)  # type: ignore[arg-type]
        return Reader(model, settings, Prefixes(settings.prefix_cache_bytes))

    return opened


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the tiny checkpoint."""
    return Path(shutil.copytree(TINY, tmp_path / "tiny-clef"))
