"""New settings for a running gateway: everything is made first, then swapped in one step.

Requests in progress go on with what they have; none is dropped. What cannot be had without a
restart stays as it is, and is named.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from engines.fleet import Fleet
from engines.lane import Lane
from gateway.app import Services
from gateway.config import Settings
from gateway.config_file import ConfigError, Configuration
from gateway.logs import open_log
from gateway.outcome import Outcome
from gateway.plan import Plan
from gateway.wiring import install
from gateway.wiring_ledger import NoLedger, renewed_ring, reprice
from gateway.wiring_limits import ask_limits, body_limits
from gateway.wiring_watch import watch_again

_LOG = logging.getLogger("tiergate")

FIXED_SERVER = ("host", "port", "deadline_s", "keep_alive_s", "drain_s", "leave_s", "backlog")
"""Settings of `[server]` that change with a restart only."""
FIXED_SECTIONS = ("engines", "ledger", "pricing", "watch", "dashboard", "traces")
"""Tables that change with a restart only."""


class Reloader:
    """Whoever may be asked to read the configuration again. Confined to the event loop."""

    def __init__(
        self,
        read: Callable[[], Configuration],
        settings: Settings,
        services: Services,
        lanes: Mapping[str, Lane | Fleet],
    ) -> None:
        """`read` blocks; it reads what `settings` came from."""
        self._read = read
        self._settings = settings
        self._services = services
        self._lanes = lanes
        self._turn = asyncio.Lock()

    async def reload(self) -> Outcome:
        """Read and swap; what came of it, which is also logged and counted. Never raises."""
        async with self._turn:
            before = self._services.reloaded
            try:
                configuration = await asyncio.to_thread(self._read)
                outcome = self._swapped(configuration, before.count + 1)
            except (ConfigError, NoLedger) as error:
                outcome = Outcome(before.count + 1, str(error))
                _LOG.error("the configuration stays as it was: %s", error)
            except Exception:  # noqa: BLE001 - whoever asked has to be told in any case
                outcome = Outcome(before.count + 1, "internal error; the log has more")
                _LOG.exception("the configuration stays as it was")
            self._services.reloaded = outcome
            self._services.metrics.reloads.add("failed" if outcome.error else "done")
            return outcome

    def _swapped(self, configuration: Configuration, count: int) -> Outcome:
        wanted, before = configuration.settings, self._settings
        different = list(_different(before, wanted, ()))
        kept = [key for key in different if _fixed(key)]
        settings = _with_what_is_fixed(before, configuration) if kept else wanted
        _adopt(settings, self._services, self._lanes)
        if settings.log != before.log:
            open_log(settings.log)
        self._settings = settings
        changed = tuple(_name(key) for key in different if key not in kept)
        places = tuple(_place(key, configuration) for key in kept)
        _LOG.info("reloaded", extra={"reloaded": " ".join(changed) or "nothing"})
        if places:
            _LOG.warning("needs a restart", extra={"kept": " ".join(places)})
        return Outcome(count, None, changed, places)


def _adopt(settings: Settings, services: Services, lanes: Mapping[str, Lane | Fleet]) -> None:
    """Make everything, then swap it.

    Raises:
        ConfigError, NoLedger: nothing is swapped.
    """
    ring = renewed_ring(settings, services.books)
    plans = dict(services.plans)
    install(services, settings, lanes)  # the last thing that can fail, and it fails before it acts
    _carry_over(plans, services.plans)
    watch_again(services, settings)
    services.ring = ring
    services.body = body_limits(settings, services.body.room)
    services.ask = ask_limits(settings)
    services.default_model = settings.default_model
    services.proxies.trust(settings.server.trusted_proxies)
    reprice(settings, services)
    services.journal.access_log = settings.log.access


def _carry_over(before: Mapping[str, Plan], after: Mapping[str, Plan]) -> None:
    """What plans have learnt since the start, where it still means the same."""
    for name, plan in after.items():
        old = before.get(name)
        if old is None or old.engines != plan.engines:
            continue
        if old.rules.window == plan.rules.window:
            plan.share = old.share
        plan.mean_step_us = old.mean_step_us
        plan.tiers = tuple(
            replace(new, demoted=was.demoted) if was.floors == new.floors else new
            for was, new in zip(old.tiers, plan.tiers, strict=True)
        )


def _with_what_is_fixed(before: Settings, configuration: Configuration) -> Settings:
    """The wanted settings, but the old ones where these need a restart.

    Raises:
        ConfigError: they do not go together, e.g. a model wants an engine that is not loaded.
    """
    wanted = configuration.settings
    server = {name: getattr(before.server, name) for name in FIXED_SERVER}
    mixed = dict(wanted) | {name: getattr(before, name) for name in FIXED_SECTIONS}
    mixed["server"] = wanted.server.model_copy(update=server)
    try:
        return Settings.model_validate(mixed)
    except ValidationError as error:
        why = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
        tables = ", ".join(f"[{name}]" for name in FIXED_SECTIONS)
        raise ConfigError(f"{configuration.path}: {why} ({tables} change with a restart)") from None


Key = tuple[str, ...]


def _different(before: object, after: object, key: Key) -> Iterator[Key]:
    """Keys of the settings that differ; a named table that came or went is one."""
    if before == after:
        return
    if isinstance(before, BaseModel) and type(before) is type(after):
        for name in type(before).model_fields:
            yield from _different(getattr(before, name), getattr(after, name), (*key, name))
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _different(before.get(name), after.get(name), (*key, str(name)))
    else:
        yield key


def _fixed(key: Key) -> bool:
    return key[0] in FIXED_SECTIONS or (key[0] == "server" and key[1] in FIXED_SERVER)


def _name(key: Key) -> str:
    return ".".join(key)


def _place(key: Key, configuration: Configuration) -> str:
    """The key and the line that wants it to be different, if there is one."""
    for length in range(len(key), 0, -1):
        if line := configuration.lines.get(key[:length]):
            return f"{_name(key)} ({configuration.path}:{line})"
    return _name(key)
