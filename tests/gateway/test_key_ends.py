"""How keys end: on open connections, after a reload, a day after a rotation, at a start."""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway import issuing
from gateway.cli import main
from gateway.ledger.sqlite import SqliteStore
from gateway.wiring import new_services
from gateway.wiring_ledger import open_books
from tests.gateway.conftest import ASK, Gateway, bearer, ledger_settings
from tests.gateway.test_keys import CONFIG

PATH = "/v1/systemone"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(path=tmp_path / "ledger.db"))
    return path


@pytest.fixture
def process(config: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway in a process of its own, and its URL."""
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[4]
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(10) == 0


def ask(connection: http.client.HTTPConnection, headers: dict[str, str]) -> int:
    connection.request("POST", PATH, json.dumps(ASK), headers)
    response = connection.getresponse()
    response.read()
    return response.status


def reloads(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/ready")
    told: int = json.loads(connection.getresponse().read())["process"]["reloaded"]["count"]
    return told


def test_a_revoked_key_fails_on_open_connections_and_after_a_reload(
    process: tuple[subprocess.Popen[str], str], config: Path, tmp_path: Path
) -> None:
    running, url = process
    host = urlsplit(url).netloc
    key = bearer(ledger_settings(tmp_path))
    with (
        closing(http.client.HTTPConnection(host, timeout=10)) as first,
        closing(http.client.HTTPConnection(host, timeout=10)) as second,
    ):
        before = [ask(first, key), ask(second, key)]
        assert main(["keys", "revoke", "team", "--config", str(config)]) == 0
        revoked = [ask(first, key), ask(second, key)]
        running.send_signal(signal.SIGHUP)
        while not reloads(second):
            pass
        reloaded = [ask(first, key), ask(second, key)]

    assert before == [200, 200]
    assert revoked == reloaded == [401, 401]


@pytest.mark.parametrize(("later_s", "old_status"), [(86_000, 200), (86_401, 401)])
async def test_after_a_rotation_the_old_secret_works_for_a_day(
    gateway: Gateway,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    later_s: int,
    old_status: int,
) -> None:
    settings = ledger_settings(tmp_path)
    old, now_s = bearer(settings), time.time()
    with closing(SqliteStore(settings.ledger.path)) as store:
        new = {"authorization": f"Bearer {issuing.rotate(store, 'team', now_s).minted.text}"}
    with gateway(settings) as client:
        monkeypatch.setattr("gateway.app.time.time", lambda: now_s + later_s)
        statuses = [
            (await client.post(PATH, json=ASK, headers=headers)).status_code
            for headers in (old, new)
        ]

    assert statuses == [old_status, 200]


def test_a_money_budget_without_prices_refuses_to_start(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bearer(ledger_settings(tmp_path), usd_per_day=5)

    code = main(["serve", "--config", str(config), "--port", "0"])

    assert code == 2
    said = capsys.readouterr().err
    assert "'team' has a money budget, but the engine 'scripted' has no price" in said


@pytest.mark.parametrize("over", ["revoked", "expired"])
def test_a_key_that_is_over_needs_no_prices(tmp_path: Path, over: str) -> None:
    settings = ledger_settings(tmp_path)
    with closing(SqliteStore(settings.ledger.path)) as store:
        wish = {"name": "team", "usd_per_day": 5, "expires": "1h"}
        issuing.create(store, wish, [], 0.0 if over == "expired" else time.time())
        if over == "revoked":
            issuing.revoke(store, "team", time.time())
    services = new_services(settings)

    with open_books(settings, services):
        assert [key.name for key in services.ring.keys] == ["team"]
