"""One HTTP exchange with a running gateway, for the commands that take `--url`."""

import json
import os
import urllib.error
import urllib.request
from typing import Any

from gateway.config_file import ConfigError

_TIMEOUT_S = 30.0


class Unreachable(Exception):
    """Nobody answered, or not in JSON."""


def exchange(url: str, path: str, key_env: str | None, body: object = None) -> tuple[int, Any]:
    """Status and parsed body of a GET, or of a POST of `body` as JSON.

    Raises:
        Unreachable: no connection, no answer in 30 s, or not JSON.
        ConfigError: the key's environment variable is not set.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--url must begin with http:// or https://, not '{url}'")
    headers = {"accept": "application/json", "content-type": "application/json"}
    if key_env is not None:
        if not (key := os.environ.get(key_env)):
            raise ConfigError(f"--key-env: the environment variable {key_env} is not set")
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    request = urllib.request.Request(url.rstrip("/") + path, data, headers)  # noqa: S310 - checked
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        try:
            return error.code, json.load(error)
        except ValueError:
            raise Unreachable(f"{url} answered {error.code} without JSON") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(f"{url} cannot be reached: {reason}") from None
