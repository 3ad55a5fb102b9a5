"""Servers as processes of their own: started on a core and a free port, stopped by their pid."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

_READY_WITHIN_S = 60.0
_STOPPED_WITHIN_S = 15.0


class CannotServe(Exception):
    """A server did not come up; the message holds the end of what it wrote."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    name: str
    pid: int
    port: int


@contextmanager
def running(
    name: str,
    command: Sequence[str],
    *,
    core: int,
    ready: bytes,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server from its first answer to the end of the block.

    `{port}` in the command becomes a free port. Ready is when a GET of the path `ready` is
    answered with a status below 500.

    Raises:
        CannotServe: it ended, or did not answer within a minute.
    """
    port = free_port()
    line = ["taskset", "-c", str(core), *(part.replace("{port}", str(port)) for part in command)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        try:
            _wait(name, process, port, ready, log)
            yield Server(name, process.pid, port)
        finally:
            _stop(process)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(
    name: str, process: subprocess.Popen[bytes], port: int, ready: bytes, log: IO[bytes]
) -> None:
    until_s = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            break
        if _answers(port, ready):
            return
        time.sleep(0.05)
    log.seek(0)
    said = log.read().decode(errors="replace")[-2000:]
    raise CannotServe(f"{name} did not come up (exit code {process.poll()}):\n{said}")


def _answers(port: int, path: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
            connection.sendall(
                b"GET %b HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n" % path
            )
            status = connection.recv(64).split()
    except OSError:
        return False
    return len(status) > 1 and status[1].isdigit() and int(status[1]) < 500


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
