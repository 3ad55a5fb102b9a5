"""Gateways for the ledger's benches: one without keys, others with everything on."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench import procs

Durability = Literal["group", "async"]

_SETTINGS = """\
default_model = "bench"

[engines.scripted]
kind = "scripted"
script = "even"

[models.bench]
engine = "scripted"
aliases = ["jev-latest"]

[[prices.engines.scripted]]
effective = 2026-01-01
usd_per_million_tokens = 0.02
"""
_LEDGER = """
[ledger]
path = "{path}"
durability = "{durability}"
"""
_LIMITS = {
    "--rpm": "100000000",
    "--tpm": "100000000000",
    "--tokens-per-day": "1000000000000",
    "--tokens-per-month": "10000000000000",
    "--usd-per-day": "100000",
}
"""Every kind of limit, none of them reached."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A configuration on disk, and the key that it knows."""

    name: str
    settings: Path
    key: str
    ledger: Path | None

    @contextmanager
    def running(self, core: int) -> Iterator[procs.Server]:
        """The gateway in a process of its own."""
        command = (sys.executable, "-m", "gateway", "serve", "--config", str(self.settings))
        with procs.running(
            self.name, (*command, "--port", "{port}"), core=core, ready=b"/ready"
        ) as server:
            yield server


def bare(folder: Path, name: str) -> Gateway:
    """Without keys, limits and ledger."""
    settings = folder / f"{name}.toml"
    settings.write_text(_SETTINGS)
    return Gateway(name, settings, "", None)


def metered(folder: Path, name: str, durability: Durability) -> Gateway:
    """With a key that has every kind of limit, and a ledger."""
    settings, ledger = folder / f"{name}.toml", folder / f"{name}.db"
    settings.write_text(_SETTINGS + _LEDGER.format(path=ledger, durability=durability))
    limits = [part for pair in _LIMITS.items() for part in pair]
    made = subprocess.run(
        [sys.executable, "-m", "gateway", "keys", "create", "bench", "--config", settings, *limits],
        capture_output=True,
        text=True,
        check=True,
    )
    return Gateway(name, settings, made.stdout.strip(), ledger)
