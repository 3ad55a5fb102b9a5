"""`tiergate doctor`'s questions about a configuration and the machine it is to run on.

Each check yields what it finds; nothing here changes anything.
"""

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from engines.contract import Facts
from gateway.config import Settings
from gateway.config_server import is_loopback
from gateway.doctor_engines import engines_examined
from gateway.doctor_found import Found, finding, fine
from gateway.doctor_machine import Machine
from gateway.ledger.examine import examine, last_digests
from gateway.ledger.store import StoreError
from gateway.plan import Promised
from gateway.text_file import text_of

_OLD_PRICES_DAYS = 180
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_TOLD_LENGTH = r"Content-Length\}\)\s*>=?\s*(\d+)"
"""Where a Caddyfile refuses a body by the length that stands in its head."""
_ENOUGH_FREE_BYTES = 2**30
_EARLIEST_S = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def examined(
    settings: Settings,
    machine: Machine,
    facts: Mapping[str, Facts],
    promises: Mapping[str, Promised],
    caddyfile: Path | None,
) -> Iterator[Found]:
    """Everything there is to say; `facts` of the engines that were loaded, if they were."""
    yield from engines_examined(settings, machine)
    yield from _clock(settings, machine)
    yield from _ledger(settings)
    yield from _secrets(settings, machine)
    yield from _front(settings, caddyfile)
    yield from _weights(facts, _seen(settings))
    yield from _promises(promises)
    yield from _prices(settings, machine)


def _clock(settings: Settings, machine: Machine) -> Iterator[Found]:
    """Budgets, expiry and prices go by the clock."""
    now = datetime.fromtimestamp(machine.now_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if machine.now_s < _EARLIEST_S:
        yield finding("clock", f"it is {now} here, which is past; set the clock")
    elif machine.synchronised is False:
        yield finding("clock", "the clock is not synchronised; turn on timesyncd or chrony")
    else:
        unsure = "" if machine.synchronised else " (whether it is synchronised cannot be told)"
        yield fine("clock", f"{now}{unsure}")


def _ledger(settings: Settings) -> Iterator[Found]:
    if not settings.ledger.path:
        yield finding("ledger", "there is none: no keys with limits, and nothing is charged")
        return
    path = Path(settings.ledger.path)
    folder = path.resolve().parent
    if not path.exists():
        there = folder.is_dir()
        said = "it is made at the first start" if there else f"make the folder {folder}"
        yield (fine if there else finding)("ledger", f"{path} is not there yet; {said}")
        return
    try:
        found = examine(path)
    except StoreError as error:
        yield finding("ledger", f"{path}: {error}")
        return
    if found.journal_mode != "wal":
        yield finding("ledger", f"{path} is in the mode '{found.journal_mode}', not in WAL")
    if not found.sound:
        yield finding("ledger", f"{path} is damaged; restore it from a backup")
    if found.latest_s is not None and found.latest_s > time.time() + 60:
        yield finding("ledger", "it holds charges from the future: the clock has gone back")
    if (free := shutil.disk_usage(folder).free) < _ENOUGH_FREE_BYTES:
        yield finding("ledger", f"{free / 2**20:.0f} MiB are free on its disk; make room")
    for one in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if one.exists() and (mode := stat.S_IMODE(one.stat().st_mode)) & 0o077:
            yield finding("ledger", f"others can read {one} (mode {mode:o}); chmod 600 {one}")
    yield from _owner(path, folder)
    yield fine("ledger", f"{path}, journal mode {found.journal_mode}")


def _owner(path: Path, folder: Path) -> Iterator[Found]:
    """Whether whoever runs the gateway can write the ledger."""
    owner = folder.stat().st_uid
    if not os.access(path, os.R_OK | os.W_OK):
        yield finding("ledger", f"whoever asks here cannot write {path}; give it to the gateway")
    elif os.geteuid() == 0 and owner not in (0, path.stat().st_uid):
        yield finding(
            "ledger",
            f"{path} does not belong to the owner of its folder, as after a command that root ran; "
            f"chown --reference {folder} {path}*",
        )


def _secrets(settings: Settings, machine: Machine) -> Iterator[Found]:
    for path in machine.secret_files:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            yield finding("keys", f"others can read {path} (mode {mode:o}); chmod 600 {path}")
    host = settings.server.host
    if not is_loopback(host):
        yield finding(
            "bind",
            f"server.host is '{host}': keys and texts travel in clear unless TLS ends in front; "
            "bind to 127.0.0.1 behind Caddy, see docs/deploy.md",
        )
    else:
        yield fine("bind", f"{host}: nobody but this machine reaches the gateway itself")


def _front(settings: Settings, caddyfile: Path | None) -> Iterator[Found]:
    """What a Caddyfile says beside what we say."""
    if caddyfile is None:
        yield fine("caddy", "no Caddyfile was looked at; name it with --caddyfile")
        return
    try:
        text = text_of(caddyfile)
    except ValueError as error:
        yield finding("caddy", f"{caddyfile} cannot be read: {error}")
        return
    bare = re.sub(r"#.*", "", text)
    ours = settings.limits.max_body_bytes
    caps = re.findall(r"^\s*max_size\s+([0-9.]+)\s*([A-Za-z]*)\s*$", bare, re.MULTILINE)
    sizes = [float(number) * _UNITS.get(unit.upper(), 0) for number, unit in caps]
    if not sizes:
        yield finding(
            "caddy", f"{caddyfile} has no max_size on a line of its own: write it as a block"
        )
    for size in sizes:
        if size != ours:
            yield finding(
                "caddy",
                f"{caddyfile} lets {size:.0f} bytes through, limits.max_body_bytes is {ours}; make "
                "them the same, in binary units (MiB)",
            )
    for size in sorted({int(one) for one in re.findall(_TOLD_LENGTH, bare)} - {ours}):
        yield finding(
            "caddy",
            f"{caddyfile} compares told lengths with {size}, limits.max_body_bytes is {ours}; make "
            "them the same",
        )
    if not settings.server.trusted_proxies:
        yield finding(
            "caddy",
            "server.trusted_proxies is empty, so every client looks like Caddy; "
            'write ["127.0.0.1"], or where Caddy is',
        )
    if sizes and all(size == ours for size in sizes):
        yield fine("caddy", f"{caddyfile} and the gateway have the same cap, {ours} bytes")


def _seen(settings: Settings) -> Mapping[str, str]:
    """Engine → the digest it had last, as far as the ledger knows."""
    path = Path(settings.ledger.path)
    if not settings.ledger.path or not path.exists():
        return {}
    try:
        return last_digests(path)
    except StoreError:
        return {}  # the check of the ledger has more to say


def _weights(facts: Mapping[str, Facts], seen: Mapping[str, str]) -> Iterator[Found]:
    for name, one in facts.items():
        said, before = f"{name}: {one.model}, digest {one.digest[:16]}", seen.get(name)
        if before in (None, one.digest):
            yield fine("weights", said)
        else:
            yield finding(
                "weights",
                f"{said}, but it last answered with {before[:16]}; calibrate again if it is meant",
            )


def _promises(promises: Mapping[str, Promised]) -> Iterator[Found]:
    for name, promised in promises.items():
        if promised.suspended is not None:
            yield finding("promise", f"{name}: suspended, {promised.suspended}")
        else:
            yield fine("promise", f"{name}: holds")


def _prices(settings: Settings, machine: Machine) -> Iterator[Found]:
    today = datetime.fromtimestamp(machine.now_s, UTC).date()
    for name, tariffs in settings.prices.hosted.items():
        age_days = (today - max(tariff.effective for tariff in tariffs)).days
        if age_days > _OLD_PRICES_DAYS:
            yield finding(
                "prices", f"prices.hosted.{name} is {age_days} days old; look it up again"
            )
    unpriced = [name for name in settings.engines if name not in settings.prices.engines]
    if unpriced and settings.ledger.path:
        said = f"no price: {', '.join(unpriced)}; their work is unpriced, and no money budget works"
        yield fine("prices", said)
