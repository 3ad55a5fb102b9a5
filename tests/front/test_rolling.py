"""Two gateways behind Caddy, restarted one after the other under load; and none at all."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.front.caddy import Front, caddy, free_port
from tests.needs import program
from tests.wire.asks import ask
from tests.wire.serving import SCRIPTED, running
from tests.wire.wellformed import refusal

# Longer than the interval and the timeout of Caddy's health check together.
CONFIG = SCRIPTED + "[server]\nleave_s = 4.0\n"


class Load:
    """Callers who ask without pause, and never twice."""

    def __init__(self, front: Front, callers: int) -> None:
        self.failures: list[str] = []
        self.answers = 0
        self._front = front
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(callers)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with self._front.client() as client:
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/systemone", json=ask())
                except Exception as error:  # noqa: BLE001 - whatever happens to a caller counts
                    self.failures.append(repr(error))
                    continue
                self.answers += 1
                if answer.status_code != 200:
                    self.failures.append(answer.text)


def complaints(log: Path) -> list[str]:
    """What Caddy logged about requests that failed."""
    return [line for line in log.read_text().splitlines() if '"level":"error"' in line]


@pytest.mark.slow
def test_a_rolling_restart_loses_no_request(tmp_path: Path) -> None:
    program("caddy", "caddy")
    folders = [tmp_path / "one", tmp_path / "two"]
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        gateways = []
        for folder, port in zip(folders, ports, strict=True):
            folder.mkdir()
            gateways.append(stack.enter_context(ExitStack()))
            gateways[-1].enter_context(running(CONFIG, folder, port=port))
        front = stack.enter_context(caddy(tmp_path, [f"127.0.0.1:{port}" for port in ports]))

        with Load(front, callers=4) as load:
            for gateway, folder, port in zip(gateways, folders, ports, strict=True):
                gateway.close()  # SIGTERM, and wait for its end
                gateway.enter_context(running(CONFIG, folder, port=port))

    assert load.failures == [], complaints(front.log)
    assert load.answers > 50


def test_a_gateway_that_comes_back_is_waited_for(tmp_path: Path) -> None:
    program("caddy", "caddy")
    port = free_port()
    with ExitStack() as gateway:
        gateway.enter_context(running(SCRIPTED, tmp_path, port=port))
        with caddy(tmp_path, [f"127.0.0.1:{port}"]) as front, front.client() as client:
            gateway.close()
            await_refused_health(front)
            with ThreadPoolExecutor(1) as caller:
                asked = caller.submit(client.post, "/v1/systemone", json=ask())
                gateway.enter_context(running(SCRIPTED, tmp_path, port=port))
                answer = asked.result()

            assert answer.status_code == 200, complaints(front.log)


def await_refused_health(front: Front) -> None:
    """Until Caddy's own check has found that nobody is there."""
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        if "HTTP request failed" in front.log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(front.log.read_text())


def test_without_any_gateway_the_refusal_is_ours_and_can_be_repeated(tmp_path: Path) -> None:
    program("caddy", "caddy")
    with running(SCRIPTED, tmp_path) as gateway:
        upstream = f"127.0.0.1:{gateway.address.port}"
        with caddy(tmp_path, [upstream]) as front:
            gateway.child.terminate()
            gateway.child.wait(30)
            with front.client() as client:
                answer = client.post("/v1/systemone", json=ask())

    assert answer.status_code in (502, 503)
    assert refusal(answer.content)["detail"]["error_type"] == "overloaded_error"
    assert answer.headers["retry-after-ms"] == "1000"
    assert answer.headers["content-type"] == "application/json"
