"""What callers see when a gateway behind Caddy dies while it reads for them."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.front.caddy import caddy
from tests.needs import program
from tests.wire.asks import ask
from tests.wire.serving import SCRIPTED, Running, doomed, running

SLOW = SCRIPTED.replace('kind = "scripted"', 'kind = "scripted"\ndelay_s = 3.0')
LOG = '[server]\ntrusted_proxies = ["127.0.0.1"]\n[log]\naccess = true\n'


def await_a_request(gateway: Running) -> None:
    """Until the gateway has a request in hand besides the one that asks."""
    while True:
        text = httpx.get(f"{gateway.url}/metrics").text
        if "\ntiergate_requests_in_progress 2.0\n" in text:
            return


def test_what_a_dead_gateway_had_in_hand_is_refused_at_once_and_not_sent_again(
    tmp_path: Path,
) -> None:
    program("caddy", "caddy")
    folders = tmp_path / "dying", tmp_path / "living"
    for folder in folders:
        folder.mkdir()
    with (
        running(SLOW + LOG, folders[1]) as living,
        doomed(SLOW + LOG, folders[0]) as dying,
    ):
        upstreams = [f"127.0.0.1:{one.address.port}" for one in (dying, living)]
        with (
            caddy(tmp_path, upstreams) as front,
            front.client() as client,
            ThreadPoolExecutor(2) as callers,
        ):
            asked = [callers.submit(client.post, "/v1/systemone", json=ask()) for _ in range(2)]
            await_a_request(dying)
            await_a_request(living)
            os.kill(dying.pid, signal.SIGKILL)
            answers = sorted((one.result() for one in asked), key=lambda one: one.status_code)

    refused = answers[1]
    assert [one.status_code for one in answers] == [200, 502]
    assert refused.json()["detail"]["error_type"] == "overloaded_error"
    assert refused.headers["retry-after-ms"]
    assert living.log.read_text(encoding="utf-8").count("/v1/systemone") == 1
