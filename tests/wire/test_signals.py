"""A gateway process and what it is told from outside: reload, leave, stop."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from .asks import ask
from .serving import SCRIPTED, Running, running

_SLOW = SCRIPTED.replace('kind = "scripted"', 'kind = "scripted"\ndelay_s = 1.0')


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Running]:
    with running(SCRIPTED, tmp_path) as one:
        yield one


def reloaded(gateway: Running) -> dict[str, object]:
    """What /ready says of the last reload."""
    found: dict[str, object] = httpx.get(f"{gateway.url}/ready").json()["process"]["reloaded"]
    return found


def tiergate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of tiergate, ended."""
    command = [sys.executable, "-m", "gateway", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_tiergate_reload_says_what_changed(gateway: Running) -> None:
    gateway.config.write_text(SCRIPTED + "[limits]\nmax_questions = 1\n[ledger]\npath = 'x.db'\n")

    told = tiergate(
        "reload", "--config", str(gateway.config), "--port", str(gateway.address.port), "--json"
    )

    assert told.returncode == 0, told.stderr
    outcome = json.loads(told.stdout)
    assert outcome["changed"] == ["limits.max_questions"]
    assert re.match(r"ledger\.path \(.*config\.toml:\d+\)", outcome["kept"][0])
    assert httpx.post(f"{gateway.url}/v1/systemone", json=ask()).status_code == 422


def test_tiergate_reload_of_a_bad_file_is_2_with_the_line_and_changes_nothing(
    gateway: Running,
) -> None:
    gateway.config.write_text(SCRIPTED + "[limits]\nmax_qestions = 1\n")

    told = tiergate("reload", "--config", str(gateway.config), "--port", str(gateway.address.port))

    assert told.returncode == 2
    assert "nothing has changed" in told.stderr
    assert re.search(r"config\.toml:\d+: limits\.max_qestions", told.stderr)
    assert httpx.post(f"{gateway.url}/v1/systemone", json=ask()).status_code == 200
    assert "the configuration stays as it was" in gateway.log.read_text()


def test_tiergate_reload_without_a_gateway_is_4(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(SCRIPTED)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        told = tiergate("reload", "--config", str(config), "--port", str(probe.getsockname()[1]))

    assert told.returncode == 4
    assert "cannot be reached" in told.stderr


def test_no_request_is_dropped_while_settings_are_reloaded(gateway: Running) -> None:
    statuses: list[int] = []
    stop = threading.Event()

    def keep_asking() -> None:
        with httpx.Client(base_url=gateway.url, trust_env=False, timeout=30) as client:
            while not stop.is_set():
                statuses.append(client.post("/v1/systemone", json=ask()).status_code)

    callers = [threading.Thread(target=keep_asking) for _ in range(4)]
    for caller in callers:
        caller.start()
    try:
        for round_ in range(5):
            gateway.config.write_text(SCRIPTED + f"[limits]\nmax_questions = {10 + round_}\n")
            count = reloaded(gateway)["count"]
            os.kill(gateway.pid, signal.SIGHUP)
            while reloaded(gateway)["count"] == count:
                pass
    finally:
        stop.set()
        for caller in callers:
            caller.join()

    assert reloaded(gateway)["count"] == 5
    assert set(statuses) == {200}
    assert len(statuses) > 20


def test_a_hangup_while_models_load_ends_nothing(tmp_path: Path) -> None:
    with running(SCRIPTED, tmp_path, hang_up=True) as gateway:
        assert httpx.get(f"{gateway.url}/health").status_code == 200


def test_what_was_accepted_is_answered_and_charged_after_sigterm(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    found: list[int] = []
    with running(_SLOW + f'[ledger]\npath = "{ledger}"\n', tmp_path) as gateway:

        def one(number: int) -> None:
            body = ask(state=f"Order {number}")
            url = f"{gateway.url}/v1/systemone"
            found.append(httpx.post(url, json=body, timeout=30).status_code)

        callers = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for caller in callers:
            caller.start()
        while in_progress(gateway) < len(callers):
            pass
        os.kill(gateway.pid, signal.SIGTERM)
        for caller in callers:
            caller.join()
        gateway.child.wait(30)

    assert found == [200] * 4
    with closing(sqlite3.connect(ledger)) as connection:
        assert connection.execute("SELECT count(*) FROM charges").fetchone() == (4,)


def in_progress(gateway: Running) -> int:
    """Requests that have begun and not ended, without the one that asks."""
    text = httpx.get(f"{gateway.url}/metrics", timeout=30).text
    (count,) = re.findall(r"^tiergate_requests_in_progress (\S+)$", text, re.MULTILINE)
    return int(float(count)) - 1


def test_a_gateway_that_leaves_says_so_and_still_answers(tmp_path: Path) -> None:
    config = SCRIPTED + "[server]\nleave_s = 60\n"
    with running(config, tmp_path) as gateway:
        os.kill(gateway.pid, signal.SIGTERM)
        while (ready := httpx.get(f"{gateway.url}/ready")).status_code == 200:
            pass
        asked = httpx.post(f"{gateway.url}/v1/systemone", json=ask())
        os.kill(gateway.pid, signal.SIGTERM)  # the second one is meant at once

        assert gateway.child.wait(30) == 0
    assert ready.json()["status"] == "leaving"
    assert asked.status_code == 200
    assert asked.headers["connection"] == "close"
    told = re.findall(r"\] (\w+)", gateway.log.read_text())
    assert told == ["loading", "ready", "leaving", "stopping", "stopped"]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("", ["its page is {url}/ui", "", "Try it:"]),
        ("[dashboard]\nenabled = false\n", ["", "Try it:"]),
        ('[log]\nformat = "json"\n', []),
    ],
)
def test_a_person_is_told_where_the_page_is_and_what_to_try(
    tmp_path: Path, more: str, lines: list[str]
) -> None:
    with running(SCRIPTED + more, tmp_path) as gateway:
        os.kill(gateway.pid, signal.SIGTERM)
        assert gateway.child.stdout is not None
        told = gateway.child.stdout.read().splitlines()

    assert told[: len(lines)] == [line.format(url=gateway.url) for line in lines]
    assert bool(told) is bool(lines)


def test_a_service_manager_is_told_of_every_turn(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        with running(SCRIPTED, tmp_path, environment=environment) as gateway:
            told = [until(manager, "READY=1")]
            told.append(until(manager, "WATCHDOG=1"))
            os.kill(gateway.pid, signal.SIGHUP)
            told.append(until(manager, "RELOADING=1"))
            told.append(until(manager, "READY=1"))
            os.kill(gateway.pid, signal.SIGTERM)
            told.append(until(manager, "STOPPING=1"))

    assert "STATUS=loading scripted" in told[0]
    assert "MONOTONIC_USEC=" in told[2]


def test_a_service_manager_is_told_before_the_last_requests_are_answered(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with (
            running(_SLOW, tmp_path, environment=environment) as gateway,
            ThreadPoolExecutor(1) as caller,
        ):
            until(manager, "READY=1")
            asked = caller.submit(
                httpx.post, f"{gateway.url}/v1/systemone", json=ask(), timeout=30, trust_env=False
            )
            while in_progress(gateway) < 1:
                pass
            os.kill(gateway.pid, signal.SIGTERM)
            until(manager, "STOPPING=1")
            early = not asked.done()
            status = asked.result().status_code

    assert early
    assert status == 200


def until(manager: socket.socket, line: str) -> str:
    """Everything that is told up to the message with this line."""
    told = ""
    while line not in told.splitlines():
        told += manager.recv(4096).decode() + "\n"
    return told
