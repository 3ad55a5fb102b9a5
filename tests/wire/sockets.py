"""HTTP/1 spoken byte by byte, for what no client library would send."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .serving import Address

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One response."""

    status: int
    headers: dict[str, str]
    """Lower-cased name → value."""
    body: bytes

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Line:
    """A connection. Replies are read in the order in which they come."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = b""

    def send(self, *chunks: bytes) -> None:
        """Write; quietly nothing more when the other side has closed."""
        try:
            for chunk in chunks:
                self._connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            return

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        self._connection.shutdown(socket.SHUT_WR)

    def reply(self) -> Reply:
        """The next response, interim ones (1xx) included.

        Raises:
            AssertionError: the connection ended before a whole response was there.
        """
        head = self._until(b"\r\n\r\n").decode("latin-1")
        start, *lines = head.split("\r\n")
        headers = {}
        for line in filter(None, lines):
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        status = int(start.split()[1])
        if status < 200:
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding", "") == "chunked":
            return Reply(status, headers, self._chunks())
        length = headers.get("content-length")
        body = self._rest() if length is None else self._exactly(int(length))
        return Reply(status, headers, body)

    def closed(self) -> bool:
        """Whether the other side closes without sending anything more."""
        return not self._left and self._rest() == b""

    def _more(self) -> bytes:
        try:
            return self._connection.recv(65_536)
        except ConnectionResetError:
            raise AssertionError(f"the connection was reset after {self._left!r}") from None
        except TimeoutError:
            raise AssertionError(f"nothing came after {self._left!r}") from None

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._left:
            more = self._more()
            assert more, f"the connection ended after {self._left!r}"
            self._left += more
        found, _, self._left = self._left.partition(mark)
        return found

    def _exactly(self, length: int) -> bytes:
        while len(self._left) < length:
            more = self._more()
            assert more, "the connection ended within a body"
            self._left += more
        found, self._left = self._left[:length], self._left[length:]
        return found

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._exactly(size)
            self._until(b"\r\n")
        self._until(b"\r\n")
        return body

    def _rest(self) -> bytes:
        while more := self._more():
            self._left += more
        found, self._left = self._left, b""
        return found


@contextmanager
def line(address: Address) -> Iterator[Line]:
    """A new connection, closed afterwards."""
    with socket.create_connection((address.host, address.port), PATIENCE_S) as connection:
        yield Line(connection)


def posted(
    body: bytes,
    *headers: str,
    method: str = "POST",
    path: str = "/v1/systemone",
    version: str = "1.1",
) -> bytes:
    """The bytes of a request with a right Content-Length and nothing else but `headers`."""
    lines = [
        f"{method} {path} HTTP/{version}",
        "Host: gateway",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def exchange(address: Address, *chunks: bytes) -> Reply:
    """The one response to these bytes on a connection of their own."""
    with line(address) as connection:
        connection.send(*chunks)
        return connection.reply()
