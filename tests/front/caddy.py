"""Caddy with the project's Caddyfile and a CA of its own, in front of running gateways."""

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2
from typesafe_sdk import RetryPolicy, TypeSafeClient

from tests.needs import program
from tests.wire.serving import KEY

CADDYFILE = Path(__file__).parents[2] / "Caddyfile"
_READY_S = 30.0


@dataclass(frozen=True, slots=True)
class Front:
    """Where Caddy listens, and what it takes to talk to it."""

    port: int
    root: Path
    """Certificate of the CA."""
    environment: Mapping[str, str]
    log: Path

    @property
    def url(self) -> str:
        """Root of every route, without a slash at the end."""
        return f"https://localhost:{self.port}"

    @property
    def trust(self) -> ssl.SSLContext:
        """What believes in the CA and nothing else."""
        return ssl.create_default_context(cafile=str(self.root))

    def client(self, **options: object) -> httpx2.Client:
        """A plain client."""
        return httpx2.Client(
            base_url=self.url,
            verify=self.trust,
            timeout=60,
            trust_env=False,
            **options,  # type: ignore[arg-type]
        )

    def sdk(
        self,
        *,
        compression: Literal["zstd", False] | None = None,
        retries: int = 0,
        sent: list[httpx2.Request] | None = None,
    ) -> TypeSafeClient:
        """The official client; by default one that does not ask twice. `sent` gets its requests."""
        hooks = {"request": [] if sent is None else [sent.append]}
        return TypeSafeClient(
            api_key=KEY,
            base_url=self.url,
            http_client=self.client(event_hooks=hooks),
            retry=RetryPolicy(max_retries=retries),
            compression=compression,
        )

    def reload(self) -> None:
        """Have Caddy read the Caddyfile again. Raises: CalledProcessError."""
        command = [program("caddy", "caddy"), "reload", "--config", str(CADDYFILE), "--force"]
        address = ["--address", self.environment["TIERGATE_CADDY_ADMIN"]]
        subprocess.run([*command, *address], env=self.environment, check=True, capture_output=True)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def caddy(folder: Path, upstreams: Sequence[str]) -> Iterator[Front]:
    """Caddy in front of `HOST:PORT`s, from its first answer to the end of the block.

    Raises:
        AssertionError: it does not come up; with what it logged.
    """
    home, log = folder / "caddy", folder / "caddy.log"
    port, admin = free_port(), f"localhost:{free_port()}"
    environment = {
        **os.environ,
        "TIERGATE_DOMAIN": "localhost",
        "TIERGATE_UPSTREAMS": " ".join(upstreams),
        "TIERGATE_HTTPS_PORT": str(port),
        "TIERGATE_HTTP_PORT": str(free_port()),
        "TIERGATE_CADDY_ADMIN": admin,
        "TIERGATE_BODY_TIMEOUT": "4s",
        "XDG_DATA_HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
    }
    command = [program("caddy", "caddy"), "run", "--config", str(CADDYFILE)]
    with (
        log.open("wb") as written,
        subprocess.Popen(
            command, env=environment, stdout=written, stderr=written, stdin=subprocess.DEVNULL
        ) as child,
    ):
        root = home / "caddy/pki/authorities/local/root.crt"
        front = Front(port, root, environment, log)
        try:
            _await_answer(front, child)
            yield front
        finally:
            child.terminate()
            child.wait(30)


def _await_answer(front: Front, child: "subprocess.Popen[bytes]") -> None:
    until_s = time.monotonic() + _READY_S
    while time.monotonic() < until_s and child.poll() is None:
        if front.root.exists() and _answers(front):
            return
        time.sleep(0.05)
    raise AssertionError(f"caddy does not answer:\n{front.log.read_text()[-4000:]}")


def _answers(front: Front) -> bool:
    try:
        with front.client() as client:
            return client.get("/health").status_code == 200
    except (httpx2.HTTPError, ssl.SSLError, OSError):
        return False
