"""One HTTP exchange with a running gateway, for the commands that take `--url`."""

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any

from gateway.config_file import ConfigError
from gateway.documents import json_tree

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
    data = None if body is None else encoded(body)
    request = urllib.request.Request(url.rstrip("/") + path, data, headers)  # noqa: S310 - checked
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            status, content = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, content = error.code, error.read()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(f"{url} cannot be reached: {reason}") from None
    try:
        return status, json_tree(content)
    except ValueError:
        raise Unreachable(f"{url} answered {status}, but not in JSON") from None


def encoded(body: object) -> bytes:
    """The body as JSON.

    Raises:
        ConfigError: it holds what JSON cannot: NaN, infinity or half a surrogate pair.
    """
    try:
        return json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        raise ConfigError("state or questions hold what JSON cannot, e.g. NaN") from None


def refusal_of(answer: Any) -> str:
    """The sentence in the body of a refusal."""
    detail = answer.get("detail") if isinstance(answer, dict) else answer
    if isinstance(detail, list):
        return "; ".join(
            f"{'.'.join(str(part) for part in one['loc'][1:])}: {one['msg']}" for one in detail
        )
    return str(detail.get("message", detail)) if isinstance(detail, dict) else str(detail)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The gateway never redirects, and a key must not follow somebody who does."""

    def redirect_request(self, *_: object) -> None:
        """No new request: the redirect itself is the answer."""


_OPENER = urllib.request.build_opener(_NoRedirects)
