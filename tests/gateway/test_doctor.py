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
from gateway.config import Settings
from gateway.doctor import examined
from gateway.doctor_found import Found
from gateway.doctor_machine import Machine, this_machine
from gateway.ledger.sqlite import SqliteStore
from gateway.plan import Promised
from policies.cascade import Floors

ROOT = Path(__file__).parents[2]
NOW_S = 1_796_000_000.0  # 2026-11-30
MACHINE = Machine(
    cpus=4,
    memory_bytes=8 * 2**30,
    now_s=NOW_S,
    synchronised=True,
    gpus=(),
    kernels="the CPU has avx2",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "ledger.db")
    store = SqliteStore(path)
    yield path
    store.close()


def settings_of(ledger: str = "", **sections: Any) -> Settings:
    server = {"trusted_proxies": ["127.0.0.1"], **sections.pop("server", {})}
    whole = {"ledger": {"path": ledger}, "server": server, **sections}
    return Settings.model_validate(whole)


def findings(
    settings: Settings,
    machine: Machine = MACHINE,
    caddyfile: Path | None = ROOT / "Caddyfile",
    **more: Any,
) -> list[Found]:
    facts, promises = more.get("facts", {}), more.get("promises", {})
    found = examined(settings, machine, facts, promises, caddyfile)
    return [one for one in found if one.level == "finding"]


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


def test_more_threads_than_cpus_are_found(ledger: str) -> None:
    engines = {"starter": {"kind": "starter", "workers": 16}}

    (found,) = findings(settings_of(ledger, engines=engines))

    assert "engines.starter.workers is 16" in found.message
    assert "4 CPUs" in found.message


def test_two_engines_that_want_every_cpu_are_found(ledger: str, tmp_path: Path) -> None:
    engines = {
        "starter": {"kind": "starter"},
        "laya": {"kind": "laya", "path": str(tmp_path)},
    }

    (found,) = findings(settings_of(ledger, engines=engines))

    assert "starter, laya each use all of 4 CPUs" in found.message


def test_weights_that_do_not_fit_into_memory_are_found(ledger: str, tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(9 * 2**30)  # a hole: no byte of it is written
    engines = {"starter": {"kind": "laya", "path": str(tmp_path)}}

    (found,) = findings(settings_of(ledger, engines=engines))

    assert found.check == "memory"


@pytest.fixture
def clef(tmp_path: Path) -> Path:
    """A folder that looks as if it held 18 GiB of weights."""
    folder = tmp_path / "clef"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as weights:
        weights.truncate(18 * 2**30)
    return folder


def test_threads_of_a_large_model_on_the_cpu_are_threads_too(ledger: str, tmp_path: Path) -> None:
    section = {"kind": "clef", "path": str(tmp_path), "devices": ["cpu"], "threads": 16}

    (found,) = findings(settings_of(ledger, engines={"starter": section}))

    assert "engines.starter.threads is 16" in found.message


def test_both_checkpoints_of_an_engine_count_as_memory(ledger: str, clef: Path) -> None:
    section = {"kind": "laya", "path": str(clef), "multilingual_path": str(clef)}

    (found,) = findings(
        settings_of(ledger, engines={"starter": section}), replace(MACHINE, memory_bytes=30 << 30)
    )

    assert "take about 37.3 GiB" in found.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"precision": "fp32"}, "the weights for it alone take 36.0 GiB"),
        ({"precision": "int8"}, None),
        ({"devices": ["cuda:0", "cuda:1"]}, "engines.starter wants cuda:1, but the GPUs end at 0"),
        ({"precision": "fp32", "tables": "host"}, None),  # the engine itself has to say
    ],
)
def test_weights_that_no_gpu_could_hold_are_found(
    ledger: str, clef: Path, changes: dict[str, Any], words: str | None
) -> None:
    section = {"kind": "clef", "path": str(clef), **changes}
    machine = replace(MACHINE, gpus=("NVIDIA L4, 24576 MiB, 570.00",))

    told = findings(settings_of(ledger, engines={"starter": section}), machine)

    found = [one.message for one in told if "cannot use a GPU" not in one.message]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


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


def test_a_gpu_that_is_not_there_is_found(ledger: str, tmp_path: Path) -> None:
    engines = {"starter": {"kind": "laya", "path": str(tmp_path), "device": "cuda"}}

    found = findings(settings_of(ledger, engines=engines))

    assert {one.check for one in found} == {"gpu"}
    assert "nvidia-smi shows none" in found[0].message


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
