"""`tiergate reload`: have a running gateway read its configuration again; what came of it."""

import argparse
import json
import os
import signal
import time
from typing import Any

from gateway.cli.grammar import OK, Commands, add_config, add_json
from gateway.cli.http import Unreachable, exchange
from gateway.config_file import ConfigError, configuration_path, load_address

_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.05


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "reload",
        help="have the gateway on this machine read its configuration again",
        description="Keys, limits, models, the cascade and prices change without dropping a "
        "request. A file with a mistake changes nothing.",
    )
    add_config(command)
    add_json(command)
    command.add_argument("--port", type=int, help="instead of server.port")
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what changed and what needs a restart; 2 with the reason when nothing changed.

    Raises:
        ConfigError: the gateway refused the configuration.
        Unreachable: no gateway answers, or it does not say what came of it.
    """
    host, port = load_address(configuration_path(chosen.config))
    url = f"http://{_local(host)}:{chosen.port or port}"
    before = _process(url)
    try:
        os.kill(before["pid"], signal.SIGHUP)
    except OSError as error:
        raise Unreachable(f"the gateway's process cannot be told: {error.strerror}") from None
    outcome = _outcome(url, before["reloaded"]["count"])
    if chosen.json:
        print(json.dumps(outcome))
    if outcome["error"] is not None:
        raise ConfigError(f"nothing has changed: {outcome['error']}")
    if not chosen.json:
        print(f"reloaded; changed: {', '.join(outcome['changed']) or 'nothing'}")
        for key in outcome["kept"]:
            print(f"needs a restart: {key}")
    return OK


def _local(host: str) -> str:
    """Where this machine reaches a gateway that is bound to `host`."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - the place to look, not to bind
        return "127.0.0.1" if host != "::" else "[::1]"
    return f"[{host}]" if ":" in host else host


def _process(url: str) -> dict[str, Any]:
    _, answer = exchange(url, "/ready", None)
    process = answer.get("process") if isinstance(answer, dict) else None
    if not isinstance(process, dict):
        raise Unreachable(f"{url} is no gateway of this machine")
    return process


def _outcome(url: str, count: int) -> dict[str, Any]:
    """What came of the reload after the `count`-th."""
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        outcome: dict[str, Any] = _process(url)["reloaded"]
        if outcome["count"] > count:
            return outcome
        time.sleep(_LOOK_EVERY_S)
    raise Unreachable(f"{url} has not said within {_PATIENCE_S:g} s what came of the reload")
