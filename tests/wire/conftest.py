"""Gateways and clients for the wire tests."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from typesafe_sdk import RetryPolicy, TypeSafeClient

from tests.needs import without

from .serving import (
    CASCADE,
    CHECKPOINT,
    CLEF,
    KEY,
    LAYA,
    PATIENT,
    SCRIPTED,
    STARTER,
    Address,
    keyed,
    process,
)

_GOLDENS = Path(__file__).parents[1] / "engines/laya/goldens"

CONFIGS = {
    "scripted": SCRIPTED,
    "starter": STARTER,
    "laya": LAYA,
    "cascade": CASCADE,
    "clef": CLEF,
}
"""Engine → a configuration without keys."""


def need(engine: str) -> None:
    """Skips the test when what the engine runs on is not installed; in CI that is a failure."""
    if engine in ("starter", "cascade") and importlib.util.find_spec("onnxruntime") is None:
        without("the embedded engine needs the extra 'cpu'")
    if engine == "clef" and not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        without("the large engine needs the extra 'clef'")
    if engine in ("laya", "cascade"):
        if importlib.util.find_spec("onnx") is None:
            without("importing a checkpoint needs the extra 'laya'")
        if not CHECKPOINT.exists():
            shutil.copytree(_GOLDENS / CHECKPOINT.name, CHECKPOINT)


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A gateway without keys in front of the scripted engine."""
    with process(SCRIPTED, tmp_path_factory.mktemp("scripted")) as address:
        yield address


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A gateway without keys in front of the embedded engine, configured as shipped but patient."""
    need("starter")
    with process(PATIENT, tmp_path_factory.mktemp("starter")) as address:
        yield address


@pytest.fixture(scope="session", params=["scripted", "starter"])
def server(request: pytest.FixtureRequest) -> Address:
    """A gateway without keys, once per engine that every installation has."""
    address: Address = request.getfixturevalue(request.param)
    return address


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A gateway that wants the key `KEY`, in front of the scripted engine."""
    with process(keyed(SCRIPTED), tmp_path_factory.mktemp("keyed")) as address:
        yield address


@pytest.fixture(scope="session")
def http(server: Address) -> Iterator[httpx.Client]:
    """A plain client of `server`."""
    with httpx.Client(base_url=server.url, timeout=90, trust_env=False) as client:
        yield client


@pytest.fixture
def sdk(server: Address) -> Iterator[TypeSafeClient]:
    """The official client of `server`, which does not ask twice."""
    with sdk_client(server) as client:
        yield client


def sdk_client(
    address: Address,
    *,
    retries: int = 0,
    key: str = KEY,
    compression: Literal["zstd", False] | None = None,
    prefix: str = "",
) -> TypeSafeClient:
    """An official client as its users make it, except that it may not ask twice."""
    return TypeSafeClient(
        timeout=90.0,
        api_key=key,
        base_url=address.url + prefix,
        retry=RetryPolicy(max_retries=retries),
        compression=compression,
    )
