"""What a connection tells the application of a request's body."""

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from gateway.body import WHOLE
from gateway.protocol import Protocol

HEAD = b"POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: 4\r\n\r\n"


class _Silent(asyncio.Transport):
    """Takes whatever is written."""

    def write(self, data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _Connection:
    """A connection to an application that remembers its requests and answers none."""

    def __init__(self) -> None:
        self.requests: list[tuple[Scope, Receive]] = []
        self._over = asyncio.Event()
        config = uvicorn.Config(
            self._remember, http=Protocol, interface="asgi3", log_config=None, proxy_headers=False
        )
        self.protocol = Protocol(config=config, server_state=ServerState(), app_state={})
        self.protocol.connection_made(_Silent())

    async def _remember(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append((scope, receive))
        await self._over.wait()

    async def hear(self, data: bytes) -> None:
        self.protocol.data_received(data)
        await asyncio.sleep(0)

    async def end(self) -> None:
        self.protocol.connection_lost(None)
        self._over.set()
        await asyncio.gather(*self.protocol.tasks)


async def test_a_body_that_has_arrived_is_told_and_received_without_waiting() -> None:
    connection = _Connection()

    await connection.hear(HEAD + b"body")

    ((scope, receive),) = connection.requests
    assert scope[WHOLE] is True
    with pytest.raises(StopIteration) as ended:
        receive().__await__().send(None)
    assert (ended.value.value["body"], ended.value.value["more_body"]) == (b"body", False)
    await connection.end()


async def test_a_body_that_is_still_coming_is_not_told_to_have_arrived() -> None:
    connection = _Connection()

    await connection.hear(HEAD + b"bo")

    ((scope, _),) = connection.requests
    assert WHOLE not in scope
    await connection.hear(b"dy")
    assert scope[WHOLE] is True
    await connection.end()


async def test_the_next_request_on_a_connection_has_a_body_of_its_own() -> None:
    connection = _Connection()

    await connection.hear(HEAD + b"body" + HEAD + b"bo")

    ((first, _),) = connection.requests
    assert first[WHOLE] is True
    assert WHOLE not in connection.protocol.scope
    await connection.end()
