"""Tiny checkpoints in folders that may be written, and what is opened from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.laya.checkpoint import Checkpoint, load
from engines.laya.engine import LayaEngine
from engines.laya.rows import Tokens
from engines.laya.settings import LayaSettings

from .golden import GOLDENS, NAMES

Opens = Callable[..., LayaEngine]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of each tiny checkpoint."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in NAMES:
        shutil.copytree(GOLDENS / name, folder / name)
    return folder


@pytest.fixture(scope="session", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Each tiny checkpoint's name."""
    named: str = request.param
    return named


@pytest.fixture(scope="session")
def checkpoint(checkpoints: Path, name: str) -> Checkpoint:
    """Each tiny checkpoint."""
    return load(checkpoints / name)


@pytest.fixture(scope="session")
def tokens(checkpoint: Checkpoint) -> Tokens:
    """The tokenizer as the reference uses it."""
    return Tokens(checkpoint.tokenizer, checkpoint.specials, harden=False)


@pytest.fixture(scope="session")
def opens(checkpoints: Path) -> Opens:
    """Opens an engine on the tiny English checkpoint, or on the one named by `on`."""

    def opened(on: str = "tiny-english", **options: object) -> LayaEngine:
        plain: dict[str, object] = {"language": "any"}
        return LayaEngine(LayaSettings(path=checkpoints / on, **(plain | options)))  # type: ignore[arg-type]

    return opened


@pytest.fixture
def copied(checkpoints: Path, tmp_path: Path) -> Path:
    """A copy of the tiny English checkpoint that the test may spoil."""
    folder = tmp_path / "copied"
    shutil.copytree(GOLDENS / "tiny-english", folder)
    return folder
