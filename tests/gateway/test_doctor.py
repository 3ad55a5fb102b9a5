"""What the doctor finds, one fault at a time, and that it finds nothing where nothing is wrong."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Facts
from gateway.cli import main
from gateway.doctor_machine import this_machine
from gateway.ledger.sqlite import SqliteStore
from gateway.plan import Promised
from policies.cascade import Floors
from tests.gateway.examining import MACHINE, NOW_S, ROOT, findings, settings_of


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "ledger.db")
    store = SqliteStore(path)
    yield path
    store.close()


def test_where_everything_is_in_order_nothing_is_found(ledger: str) -> None:
    facts = {"starter": Facts("model", "digest")}
    promises = {"starter": Promised(Floors())}

    assert findings(settings_of(ledger), facts=facts, promises=promises) == []


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"memory_bytes": 2**20}, "memory", "larger machine"),
        ({"now_s": 1_000_000_000.0}, "clock", "set the clock"),
        ({"synchronised": False}, "clock", "chrony"),
        ({"now_s": NOW_S + 300 * 86_400}, "prices", "days old"),
    ],
)
def test_a_machine_that_is_not_fit_is_told_what_to_do(
    ledger: str, changes: dict[str, Any], check: str, words: str
) -> None:
    found = findings(settings_of(ledger), replace(MACHINE, **changes))

    assert {one.check for one in found} == {check}
    assert words in found[0].message


def test_a_clock_nobody_speaks_for_is_no_finding(ledger: str) -> None:
    assert findings(settings_of(ledger), replace(MACHINE, synchronised=None)) == []


def test_a_told_length_that_is_not_the_cap_is_found(ledger: str, tmp_path: Path) -> None:
    path = tmp_path / "Caddyfile"
    text = (ROOT / "Caddyfile").read_text(encoding="utf-8")
    path.write_text(text.replace("32MiB", "16MiB"), encoding="utf-8")

    (found,) = findings(settings_of(ledger, limits={"max_body_bytes": 16 << 20}), caddyfile=path)

    assert "compares told lengths with 33554432" in found.message


def test_no_ledger_is_found() -> None:
    (found,) = findings(settings_of())

    assert found.check == "ledger"


def test_a_ledger_in_another_mode_or_open_to_others_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    SqliteStore(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    path.chmod(0o644)

    found = findings(settings_of(str(path)))

    assert len(found) == 2
    assert "'delete', not in WAL" in found[0].message
    assert f"chmod 600 {path}" in found[1].message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_ledger_that_root_made_for_another_user_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    path = folder / "ledger.db"
    SqliteStore(str(path)).close()
    os.chown(folder, 4711, 4711)

    (found,) = findings(settings_of(str(path)))
    os.chown(path, 4711, 4711)

    assert f"chown --reference {folder} {path}*" in found.message
    assert findings(settings_of(str(path))) == []


def test_what_is_no_ledger_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"something else" * 100)
    path.chmod(0o600)

    (found,) = findings(settings_of(str(path)))

    assert "is no ledger" in found.message


def test_a_ledger_that_is_not_there_yet_is_fine_where_it_can_be_made(tmp_path: Path) -> None:
    assert findings(settings_of(str(tmp_path / "new.db"))) == []
    (found,) = findings(settings_of(str(tmp_path / "no/such/folder/new.db")))

    assert "make the folder" in found.message


def test_an_address_that_others_reach_is_found(ledger: str) -> None:
    (found,) = findings(settings_of(ledger, server={"host": "0.0.0.0"}))

    assert found.check == "bind"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("request_body {\n max_size 32MB\n}", "32000000 bytes"),
        ("request_body {\n max_size 64MiB\n}", "67108864 bytes"),
        ("request_body max_size 32MiB", "as a block"),
        ("# max_size 32MiB", "as a block"),
    ],
)
def test_another_cap_in_front_is_found(ledger: str, tmp_path: Path, said: str, words: str) -> None:
    path = tmp_path / "Caddyfile"
    path.write_text(said)

    (found,) = findings(settings_of(ledger), caddyfile=path)

    assert found.check == "caddy"
    assert words in found.message


def test_a_front_that_is_not_trusted_is_found(ledger: str) -> None:
    (found,) = findings(settings_of(ledger, server={"trusted_proxies": []}))

    assert "trusted_proxies" in found.message


def test_other_weights_than_the_last_ones_are_found(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = SqliteStore(path)
    store.engine_seen("starter", "b" * 64, NOW_S - 10)
    store.engine_seen("starter", "a" * 64, NOW_S - 20)
    store.close()
    settings = settings_of(path)

    (found,) = findings(settings, facts={"starter": Facts("model", "a" * 64)})

    assert "last answered with " + "b" * 16 in found.message
    assert findings(settings, facts={"starter": Facts("model", "b" * 64)}) == []
    assert findings(settings, facts={"other": Facts("model", "a" * 64)}) == []


def test_a_promise_that_does_not_hold_is_found(ledger: str) -> None:
    (found,) = findings(
        settings_of(ledger), promises={"starter": Promised(Floors(), "other weights")}
    )

    assert found.message == "starter: suspended, other weights"


def test_a_key_that_others_can_read_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret, config = tmp_path / "team.key", tmp_path / "config.toml"
    secret.write_text("tg_0123456789abcdefghij")
    secret.chmod(0o644)
    config.write_text(f'[auth.keys]\nteam = "${{file:{secret}}}"\n')

    code = main(["doctor", "--no-load", "--json", "--config", str(config)])

    told = json.loads(capsys.readouterr().out)
    assert code == 1
    assert told["findings"] == len([c for c in told["checks"] if c["level"] == "finding"])
    assert any(f"chmod 600 {secret}" in one["message"] for one in told["checks"])
    assert "tg_0123" not in json.dumps(told)


def test_the_doctor_is_content_with_a_gateway_as_documented(
    tmp_path: Path, ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[server]\ntrusted_proxies = ["127.0.0.1"]\n[ledger]\npath = "{ledger}"\n')
    found = ["doctor", "--config", str(config), "--caddyfile", str(ROOT / "Caddyfile")]

    code = main(found)

    told = capsys.readouterr().out
    assert "starter: all-MiniLM-L6-v2-int8, digest" in " ".join(told.split())
    assert code == (1 if "not synchronised" in told else 0)


def test_an_engine_that_does_not_load_is_told_among_the_rest(
    tmp_path: Path, ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'[engines.starter]\nkind = "laya"\npath = "{tmp_path}"\n[ledger]\npath = "{ledger}"\n'
    )

    code = main(["doctor", "--json", "--config", str(config)])

    checks = json.loads(capsys.readouterr().out)["checks"]
    assert code == 4
    assert {"clock", "ledger", "memory"} <= {one["check"] for one in checks}
    (why,) = [one["message"] for one in checks if one["check"] == "weights"]
    assert "engines.starter cannot be loaded" in why


def test_names_of_tables_are_not_taken_for_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")

    main(["doctor", "--no-load", "--config", str(config), "--caddyfile", "[red]"])

    assert "[red] cannot be read" in " ".join(capsys.readouterr().out.split())


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    found = this_machine(None)

    assert 1 <= found.cpus <= (os.cpu_count() or 1)
    assert found.memory_bytes > 2**20
    assert found.secret_files == ()
