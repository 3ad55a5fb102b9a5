"""A server that imitates the file endpoints of the Hugging Face hub, on loopback."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_LARGE_BYTES = 1 << 20


class Hub(ThreadingHTTPServer):
    """Serves one directory as a repository at one commit; may be told to break off."""

    def __init__(self, folder: Path, repository: str, commit: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.prefix = f"/{repository}/resolve/{commit}/"
        self.commit = commit
        self.bytes_left: int | None = None
        """Break off after so many bytes of bodies, and send none from then on."""
        self.spoil = False
        """Send other bytes than the tags promise."""
        self.ranges: list[str] = []
        """`Range` headers of the requests so far."""

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        content = self._content()
        if content is not None:
            self._head(200, content, len(content))

    def do_GET(self) -> None:
        content = self._content()
        if content is None:
            return
        begin, asked = 0, self.headers.get("Range")
        if asked:
            self.server.ranges.append(asked)
            begin = int(asked.removeprefix("bytes=").split("-")[0])
        rest = content[begin:]
        self._head(206 if asked else 200, content, len(rest), begin if asked else None)
        if self.server.spoil:
            rest = bytes(len(rest))
        sent = rest[: self.server.bytes_left]
        self.wfile.write(sent)
        if self.server.bytes_left is not None:
            self.server.bytes_left -= len(sent)
        self.close_connection = len(sent) < len(rest)

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _content(self) -> bytes | None:
        path = self.server.folder / self.path.removeprefix(self.server.prefix)
        if self.path.startswith(self.server.prefix) and path.is_file():
            return path.read_bytes()
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _head(self, status: int, content: bytes, length: int, begin: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("X-Repo-Commit", self.server.commit)
        if begin is not None:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if len(content) > _LARGE_BYTES:
            self.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Linked-Size", str(len(content)))
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.send_header("ETag", f'"{blob}"')
        self.end_headers()


@contextmanager
def hub(folder: Path, repository: str, commit: str) -> Iterator[Hub]:
    """A running hub."""
    server = Hub(folder, repository, commit)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
