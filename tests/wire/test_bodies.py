"""How bodies travel: codings, multipart, chunks, sizes (W01-W08, W31, W33)."""

import gzip
import json
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal

import httpx
import pytest
from typesafe_sdk import Image, Noul, TypeSafeAPIError

from .asks import MIXED, STATE, ask, raw
from .conftest import sdk_client
from .serving import Address
from .sockets import exchange, posted
from .wellformed import decision, refusal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=edge"}

_COMPRESSIONS: tuple[Literal["zstd", False], ...] = ("zstd", False)
_CHUNK = bytes(1024 * 1024)


def form(*parts: tuple[str, bytes]) -> bytes:
    """A multipart body with the boundary `edge`."""
    pieces = [
        f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in parts
    ]
    return b"".join(pieces) + b"--edge--\r\n"


def png(side: int = 300) -> bytes:
    """A grey image that any decoder accepts."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0] + [128] * side) * side)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def bomb(megabytes: int) -> bytes:
    """A few kilobytes of zstd that grow to so many megabytes of zeros."""
    squeeze = zstd.ZstdCompressor()
    return b"".join([*(squeeze.compress(_CHUNK) for _ in range(megabytes)), squeeze.flush()])


def test_w01_a_zstd_body_of_the_sdk_gets_the_answers_of_a_plain_one(server: Address) -> None:
    state = STATE + " " * 5000
    answers = []

    for compression in _COMPRESSIONS:
        with sdk_client(server, compression=compression) as client:
            answers.append(client.system_one(state=state, questions=MIXED).answers)

    assert list(answers[0]) == list(MIXED)
    assert answers[0] == answers[1]


def test_w02_an_unknown_coding_is_415(http: httpx.Client) -> None:
    response = http.post(
        "/v1/systemone", content=raw(), headers={**JSON, "content-encoding": "snappy"}
    )

    assert response.status_code == 415
    assert "zstd" in response.headers["accept-encoding"]
    refusal(response.content)


@pytest.mark.parametrize(
    "body",
    [
        b"not zstd at all",
        zstd.compress(raw())[:-7],
        zstd.compress(raw()) + b"tail",
        zstd.compress(raw())[:4] + b"\xff" * 4 + zstd.compress(raw())[8:],
        b"",
    ],
    ids=["garbage", "truncated", "tail", "damaged", "empty"],
)
def test_w03_a_corrupt_zstd_body_is_400(http: httpx.Client, body: bytes) -> None:
    response = http.post(
        "/v1/systemone", content=body, headers={**JSON, "content-encoding": "zstd"}
    )

    assert response.status_code == 400
    refusal(response.content)


def test_w04_a_zstd_bomb_is_413_and_the_server_lives(http: httpx.Client) -> None:
    content = bomb(300)
    assert len(content) < 30_000

    response = http.post(
        "/v1/systemone", content=content, headers={**JSON, "content-encoding": "zstd"}
    )

    assert response.status_code == 413
    assert response.elapsed.total_seconds() < 5
    refusal(response.content)
    assert http.post("/v1/systemone", json=ask()).status_code == 200


def test_w05_a_gzip_body_is_read(http: httpx.Client) -> None:
    response = http.post(
        "/v1/systemone",
        content=gzip.compress(raw()),
        headers={**JSON, "content-encoding": "gzip"},
    )

    assert response.status_code == 200
    decision(ask(), response.content)


@pytest.mark.parametrize("compression", _COMPRESSIONS)
def test_w06_an_image_is_refused_in_words_that_name_images(
    server: Address, compression: Literal["zstd", False]
) -> None:
    questions = {"grey": Noul(instructions="Is the picture grey?")}

    with (
        sdk_client(server, compression=compression) as client,
        pytest.raises(TypeSafeAPIError) as caught,
    ):
        client.system_one(state=["What is this?", Image(png())], questions=questions)

    assert caught.value.status in (400, 415, 422)
    assert "image" in str(caught.value).lower()


@pytest.mark.parametrize(
    "parts",
    [
        [("request", raw(ask(state="pic", assets={"pic": {"part": "asset-0"}})))],
        [("request", raw()), ("stray", png())],
        [("asset-0", png())],
        [],
        [("request", raw()), ("request", raw())],
    ],
    ids=["missing part", "stray part", "no request part", "no part", "request twice"],
)
def test_w07_multipart_that_does_not_add_up_is_400(
    http: httpx.Client, parts: list[tuple[str, bytes]]
) -> None:
    response = http.post("/v1/systemone", content=form(*parts), headers=FORM)

    assert response.status_code == 400
    refusal(response.content)


def test_w08_multipart_with_only_a_request_part_answers_as_json_does(http: httpx.Client) -> None:
    response = http.post("/v1/systemone", content=form(("request", raw())), headers=FORM)

    assert response.status_code == 200
    assert response.json() == http.post("/v1/systemone", json=ask()).json()


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": 'Application/JSON; Charset="UTF-8"'},
        {
            **JSON,
            "x-typesafe-retry-count": "1",
            "typesafe-danger-zone-long-context": "true",
            "typesafe-danger-zone-images": "true",
            "idempotency-key": "0b9d",
        },
    ],
    ids=["charset", "odd case", "extra headers"],
)
def test_w31_charsets_and_the_headers_of_other_clients_do_not_matter(
    http: httpx.Client, headers: dict[str, str]
) -> None:
    response = http.post("/v1/systemone", content=raw(), headers=headers)

    assert response.status_code == 200
    decision(ask(), response.content)


def test_w31_a_chunked_body_is_read(http: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        body = raw()
        yield from (body[i : i + 100] for i in range(0, len(body), 100))

    response = http.post("/v1/systemone", content=chunks(), headers=JSON)

    assert response.status_code == 200
    decision(ask(), response.content)


def test_w33_a_body_of_40_mib_is_drained_and_413(server: Address) -> None:
    body = json.dumps(ask(state="x" * (40 * 1024 * 1024))).encode()

    reply = exchange(server, posted(body, "Content-Type: application/json"))

    assert reply.status == 413
    assert "x-typesafe-request-id" in reply.headers
    refusal(reply.body)


def test_w33_a_chunked_body_of_40_mib_is_drained_and_413(server: Address) -> None:
    head = b"POST /v1/systemone HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n"

    reply = exchange(server, head, *_chunked([_CHUNK] * 40))

    assert reply.status == 413
    refusal(reply.body)


def _chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    yield b"0\r\n\r\n"
