"""`tiergate doctor`'s questions about a configuration and the machine it is to run on.

Each check yields what it finds; nothing here changes anything.
"""

import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from engines.contract import Facts
from gateway.config import Settings
from gateway.config_server import is_loopback
from gateway.doctor_machine import Machine
from gateway.ledger.examine import examine
from gateway.ledger.store import StoreError
from gateway.plan import Promised
from gateway.text_file import text_of

Level = Literal["fine", "finding"]

_GIB = 2**30
_OLD_PRICES_DAYS = 180
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SLACK_BYTES = 300 * 2**20
"""About what the process takes besides its weights."""
_EARLIEST_S = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Found:
    """What one check says."""

    check: str
    level: Level
    message: str
    """A sentence; for a finding with what to do about it."""


def _fine(check: str, message: str) -> Found:
    return Found(check, "fine", message)


def _finding(check: str, message: str) -> Found:
    return Found(check, "finding", message)


def examined(
    settings: Settings,
    machine: Machine,
    facts: Mapping[str, Facts],
    promises: Mapping[str, Promised],
    caddyfile: Path | None,
) -> Iterator[Found]:
    """Everything there is to say; `facts` of the engines that were loaded, if they were."""
    yield from _threads(settings, machine)
    yield from _memory(settings, machine)
    yield from _clock(settings, machine)
    yield from _ledger(settings)
    yield from _secrets(settings, machine)
    yield from _front(settings, caddyfile)
    yield from _gpu(settings, machine)
    yield from _weights(facts, promises)
    yield from _prices(settings, machine)


def _threads(settings: Settings, machine: Machine) -> Iterator[Found]:
    """More threads than CPUs make every request slower, not more of them possible."""
    asked = {
        name: getattr(section, "workers", 0) or machine.cpus
        for name, section in settings.engines.items()
        if section.kind != "scripted" and not _devices(section)
    }
    said = f"{machine.cpus} CPUs by affinity and quota"
    for name, workers in asked.items():
        if workers > machine.cpus:
            yield _finding(
                "threads",
                f"engines.{name}.workers is {workers}, but there are {said}; set it to 0",
            )
    busy = [name for name, workers in asked.items() if workers >= machine.cpus]
    if len(busy) > 1:
        yield _finding(
            "threads",
            f"{', '.join(busy)} each use all of {said}; under load they wait for each other, so "
            "give each a part with workers",
        )
    elif all(workers <= machine.cpus for workers in asked.values()):
        yield _fine("threads", said)


def _memory(settings: Settings, machine: Machine) -> Iterator[Found]:
    on_disk = sum(
        _size_of(Path(section.path))
        for section in settings.engines.values()
        if hasattr(section, "path") and not _devices(section)
    )
    needed = on_disk + settings.limits.max_bodies_bytes + _SLACK_BYTES
    said = f"{machine.memory_bytes / _GIB:.1f} GiB of memory may be used"
    about = f"weights, bodies and the process take about {needed / _GIB:.1f} GiB"
    if needed > machine.memory_bytes:
        yield _finding("memory", f"{said}, but {about}; take a smaller model or a larger machine")
    else:
        yield _fine("memory", f"{said}; {about}")


def _clock(settings: Settings, machine: Machine) -> Iterator[Found]:
    """Budgets, expiry and prices go by the clock."""
    now = datetime.fromtimestamp(machine.now_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if machine.now_s < _EARLIEST_S:
        yield _finding("clock", f"it is {now} here, which is past; set the clock")
    elif machine.synchronised is False:
        yield _finding("clock", "the clock is not synchronised; turn on timesyncd or chrony")
    else:
        unsure = "" if machine.synchronised else " (whether it is synchronised cannot be told)"
        yield _fine("clock", f"{now}{unsure}")


def _ledger(settings: Settings) -> Iterator[Found]:
    if not settings.ledger.path:
        yield _finding("ledger", "there is none: no keys with limits, and nothing is charged")
        return
    path = Path(settings.ledger.path)
    folder = path.resolve().parent
    if not path.exists():
        there = folder.is_dir()
        said = "it is made at the first start" if there else f"make the folder {folder}"
        yield (_fine if there else _finding)("ledger", f"{path} is not there yet; {said}")
        return
    try:
        found = examine(path)
    except StoreError as error:
        yield _finding("ledger", f"{path}: {error}")
        return
    if found.journal_mode != "wal":
        yield _finding("ledger", f"{path} is in the mode '{found.journal_mode}', not in WAL")
    if not found.sound:
        yield _finding("ledger", f"{path} is damaged; restore it from a backup")
    if found.latest_s is not None and found.latest_s > time.time() + 60:
        yield _finding("ledger", "it holds charges from the future: the clock has gone back")
    if (free := shutil.disk_usage(folder).free) < _GIB:
        yield _finding("ledger", f"{free / 2**20:.0f} MiB are free on its disk; make room")
    for one in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if one.exists() and (mode := stat.S_IMODE(one.stat().st_mode)) & 0o077:
            yield _finding("ledger", f"others can read {one} (mode {mode:o}); chmod 600 {one}")
    yield _fine("ledger", f"{path}, journal mode {found.journal_mode}")


def _secrets(settings: Settings, machine: Machine) -> Iterator[Found]:
    for path in machine.secret_files:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            yield _finding("keys", f"others can read {path} (mode {mode:o}); chmod 600 {path}")
    host = settings.server.host
    if not is_loopback(host):
        yield _finding(
            "bind",
            f"server.host is '{host}': keys and texts travel in clear unless TLS ends in front; "
            "bind to 127.0.0.1 behind Caddy, see docs/deploy.md",
        )
    else:
        yield _fine("bind", f"{host}: nobody but this machine reaches the gateway itself")


def _front(settings: Settings, caddyfile: Path | None) -> Iterator[Found]:
    """What a Caddyfile says beside what we say."""
    if caddyfile is None:
        yield _fine("caddy", "no Caddyfile was looked at; name it with --caddyfile")
        return
    try:
        text = text_of(caddyfile)
    except ValueError as error:
        yield _finding("caddy", f"{caddyfile} cannot be read: {error}")
        return
    bare = re.sub(r"#.*", "", text)
    ours = settings.limits.max_body_bytes
    caps = re.findall(r"^\s*max_size\s+([0-9.]+)\s*([A-Za-z]*)\s*$", bare, re.MULTILINE)
    sizes = [float(number) * _UNITS.get(unit.upper(), 0) for number, unit in caps]
    if not sizes:
        yield _finding(
            "caddy", f"{caddyfile} has no max_size on a line of its own: write it as a block"
        )
    for size in sizes:
        if size != ours:
            yield _finding(
                "caddy",
                f"{caddyfile} lets {size:.0f} bytes through, limits.max_body_bytes is {ours}; make "
                "them the same, in binary units (MiB)",
            )
    if not settings.server.trusted_proxies:
        yield _finding(
            "caddy",
            "server.trusted_proxies is empty, so every client looks like Caddy; "
            'write ["127.0.0.1"], or where Caddy is',
        )
    if sizes and all(size == ours for size in sizes):
        yield _fine("caddy", f"{caddyfile} and the gateway have the same cap, {ours} bytes")


def _gpu(settings: Settings, machine: Machine) -> Iterator[Found]:
    wanted = {name: _devices(one) for name, one in settings.engines.items() if _devices(one)}
    if not wanted:
        yield _fine("kernels", f"no GPU is asked for; {machine.kernels}")
        return
    names = ", ".join(wanted)
    if not machine.gpus:
        yield _finding("gpu", f"{names} want a GPU, but nvidia-smi shows none")
    else:
        yield _fine("gpu", f"{names}: {'; '.join(machine.gpus)}")
    for name, section in settings.engines.items():
        if name in wanted and (missing := machine.lacks_for(section.kind)):
            yield _finding("gpu", f"engines.{name} cannot use a GPU: {missing}")


def _weights(facts: Mapping[str, Facts], promises: Mapping[str, Promised]) -> Iterator[Found]:
    for name, one in facts.items():
        yield _fine("weights", f"{name}: {one.model}, digest {one.digest[:16]}")
    for name, promised in promises.items():
        if promised.suspended is not None:
            yield _finding("promise", f"{name}: suspended, {promised.suspended}")
        else:
            yield _fine("promise", f"{name}: holds")


def _prices(settings: Settings, machine: Machine) -> Iterator[Found]:
    today = datetime.fromtimestamp(machine.now_s, UTC).date()
    for name, tariffs in settings.prices.hosted.items():
        age_days = (today - max(tariff.effective for tariff in tariffs)).days
        if age_days > _OLD_PRICES_DAYS:
            yield _finding(
                "prices", f"prices.hosted.{name} is {age_days} days old; look it up again"
            )
    unpriced = [name for name in settings.engines if name not in settings.prices.engines]
    if unpriced and settings.ledger.path:
        said = f"no price: {', '.join(unpriced)}; their work is unpriced, and no money budget works"
        yield _fine("prices", said)


def _devices(section: object) -> tuple[str, ...]:
    """The GPUs that an engine's section asks for."""
    named = (*getattr(section, "devices", ()), getattr(section, "device", ""))
    return tuple(one for one in named if one.startswith("cuda"))


def _size_of(path: Path) -> int:
    """Bytes of the largest set of weights in a checkpoint's folder."""
    if path.is_file():
        return path.stat().st_size
    files = (one for one in path.rglob("*") if one.is_file())
    return sum(one.stat().st_size for one in files if one.suffix in (".safetensors", ".onnx"))
