"""The gateway that a soak is run against: a cascade of engines that fail, a ledger, small caps."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import measure, procs

CASCADE, FRAGILE = "cascade", "fragile"
"""A model that answers whatever fails below it, and one that has nothing to fall back on."""
MAX_BODY_BYTES = 2_097_152
MAX_STATE_WORDS = 20_000

_SETTINGS = f"""\
default_model = "{CASCADE}"

[server]
body_deadline_s = 2.0

[limits]
max_body_bytes = {MAX_BODY_BYTES}
max_bodies_bytes = {8 * MAX_BODY_BYTES}

[ledger]
path = "LEDGER"

[engines.small]
kind = "scripted"
max_tokens = {MAX_STATE_WORDS // 2}
max_waiting = 8
workers = 2
faults = {{ raise = 23, nan = 29, busy = 31, stall = 499 }}

[engines.large]
kind = "scripted"
max_tokens = {MAX_STATE_WORDS}
max_waiting = 8
workers = 2
faults = {{ busy = 37, stall = 199 }}

[engines.fragile]
kind = "scripted"
faults = {{ raise = 3, nan = 5, busy = 7 }}

[models.{CASCADE}]
tiers = ["small", "large"]
aliases = ["jev-latest"]

[models.{FRAGILE}]
engine = "fragile"

[cascade]
default_floor = 0.6
on_unavailable = "small"

[[prices.engines.small]]
effective = 2026-01-01
usd_per_million_tokens = 0.02

[[prices.engines.large]]
effective = 2026-01-01
usd_per_million_tokens = 0.09
"""


@dataclass(frozen=True, slots=True)
class Soaked:
    """The gateway, its key and its ledger."""

    server: procs.Server
    settings: Path
    key: str
    ledger: Path


@dataclass(frozen=True, slots=True)
class Rest:
    """What the gateway's process holds while nobody asks anything."""

    rss_bytes: int
    descriptors: int
    threads: int


@contextmanager
def running(folder: Path, core: int) -> Iterator[Soaked]:
    """The gateway in a process of its own, with its files in `folder`.

    Raises:
        CannotServe: it did not come up.
    """
    settings, ledger = folder / "soak.toml", folder / "soak.db"
    settings.write_text(_SETTINGS.replace("LEDGER", str(ledger)), encoding="utf-8")
    gateway = [sys.executable, "-m", "gateway"]
    rights = ["--scopes", "decide,metrics", "--tokens-per-day", str(10**15)]
    made = subprocess.run(
        [*gateway, "keys", "create", "soak", "--config", settings, *rights],
        capture_output=True,
        text=True,
        check=True,
    )
    command = (*gateway, "serve", "--config", str(settings), "--port", "{port}")
    with procs.running("tiergate", command, core=core, ready=b"/ready") as server:
        yield Soaked(server, settings, made.stdout.strip(), ledger)


def rest(pid: int) -> Rest:
    """Memory, file descriptors and threads of a process."""
    held = [len(os.listdir(f"/proc/{pid}/{what}")) for what in ("fd", "task")]
    return Rest(measure.rss_bytes(pid), *held)
