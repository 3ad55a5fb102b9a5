"""What may be wished of a key, from the command line and over HTTP alike."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway import issuing
from gateway.cli import main
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Key, StoreError
from policies.limits import Limits
from tests.gateway.conftest import Gateway, bearer, ledger_settings

CONFIG = """
default_model = "m"
[ledger]
path = "{path}"
[engines.e]
kind = "scripted"
[models.m]
engine = "e"
[[prices.engines.e]]
effective = 2026-01-01
usd_per_million_tokens = 1
"""

NOT_MONEY: tuple[Any, ...] = (
    *("1e999999", "sNaN", "nan", "1e-9999999", "-1", "1,50", "$5", "", "."),
    *("0.0000000001", "2000000", "1" * 5000, True, [1], 1e300),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(str(tmp_path / "ledger.db"))) as opened:
        yield opened


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, standard output and standard error of `tiergate keys …`."""
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(path=tmp_path / "ledger.db"))

    def called(*arguments: str) -> tuple[int, str, str]:
        code = main(["keys", *arguments, "--config", str(path)])
        out, err = capsys.readouterr()
        return code, out, err

    return called


@pytest.mark.parametrize("amount", NOT_MONEY, ids=lambda amount: str(amount)[:12] or "empty")
def test_what_is_no_amount_of_money_is_refused_in_a_sentence(amount: Any) -> None:
    with pytest.raises(ValueError, match="usd_per_day must be US dollars from 0 to 1000000"):
        issuing.changed(Limits(), {"usd_per_day": amount})


@pytest.mark.parametrize(
    ("amount", "nanos"),
    [
        *(("2.50", 2_500_000_000), (2.5, 2_500_000_000), (3, 3 * 10**9), (".5", 5 * 10**8)),
        *((1e-9, 1), ("0", 0), ("1000000", 10**15)),
    ],
)
def test_an_amount_of_money_is_exact(amount: Any, nanos: int) -> None:
    assert issuing.changed(Limits(), {"usd_per_day": amount}).nanos_per_day == nanos


async def test_an_amount_that_no_decimal_holds_is_422_over_http(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    admin = bearer(settings, "root", scopes=["admin"])
    with gateway(settings) as client:
        refused = [
            await client.patch(
                "/v1/admin/keys/root/limits", content=json.dumps(wish), headers=admin
            )
            for wish in ({"usd_per_day": "1e999999"}, {"usd_per_month": "sNaN"}, {"rpm": 10**16})
        ]

    assert [answer.status_code for answer in refused] == [422, 422, 422]


@pytest.mark.parametrize("name", ["anonymous", "k_0123456789", "~x", "a/b", "é", ""])
def test_a_name_that_means_something_else_is_refused(store: SqliteStore, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        issuing.create(store, {"name": name}, [], 0.0)


def test_an_expired_key_gets_no_secret_that_would_not_work(store: SqliteStore) -> None:
    issuing.create(store, {"name": "team", "expires": "1h"}, [], 0.0)

    assert issuing.rotate(store, "team", 3599.0).key.name == "team"
    with pytest.raises(ValueError, match="has expired; make a new one"):
        issuing.rotate(store, "team", 3600.0)


def test_two_who_change_limits_at_once_do_not_undo_each_other(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("create", "team")
    named, beside = issuing.named, SqliteStore(str(tmp_path / "ledger.db"))
    beside._connection.execute("PRAGMA busy_timeout = 1")

    def seen_by_another(keys: SqliteStore, name: str) -> Key:
        found = named(keys, name)
        if keys is not beside and not beside._connection.in_transaction:
            monkeypatch.setattr("gateway.issuing.named", named)
            with pytest.raises(StoreError, match="locked"):  # while the first has seen and not set
                issuing.set_limits(beside, "team", {"tpm": 7})
        return found

    monkeypatch.setattr("gateway.issuing.named", seen_by_another)
    assert run("limits", "team", "--rpm", "5")[0] == 0
    issuing.set_limits(beside, "team", {"tpm": 7})
    beside.close()

    limits = json.loads(run("info", "team", "--json")[1])["limits"]
    assert (limits["rpm"], limits["tpm"]) == (5, 7)


def test_a_number_without_end_is_refused_and_not_a_traceback(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, err = run("create", "team", "--rpm", "9" * 5000)

    assert (code, out) == (2, "")
    assert "rpm must be a whole number from 0 to 1000000000000000" in err


def test_a_key_that_is_not_bound_is_shown_as_such(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    run("create", "team")

    shown = run("info", "team")[1]

    rows = {line.split()[1]: line.split()[3] for line in shown.splitlines() if "│" in line}
    assert (rows["models"], rows["expires"], rows["revoked"]) == ("all", "never", "no")


def test_a_list_of_keys_leaves_nothing_out(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    limits = {name: f"{name} {n}" for n, name in enumerate(issuing.LIMITS[:6], start=123_456)}
    options = [f"--{said.replace('_', '-').replace(' ', '=')}" for said in limits.values()]
    name = "a-name-that-is-rather-long-for-a-narrow-column"
    run("create", name, "--expires", "90d", *options)

    shown = run("list")[1]

    key = json.loads(run("info", name, "--json")[1])
    for said in (name, key["id"], key["expires"], *limits.values()):
        assert said in shown
    assert "…" not in shown


def test_a_ledger_that_is_not_there_is_made_by_create_alone(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    for arguments in (["list"], ["info", "a"], ["rotate", "a"], ["revoke", "a"], ["limits", "a"]):
        code, out, err = run(*arguments)
        assert (code, out) == (4, "")
        assert "`tiergate keys create` makes it" in err
        assert not (tmp_path / "ledger.db").exists()

    code, _, err = run("create", "a")
    assert code == 0
    assert f"it begins at {tmp_path / 'ledger.db'}" in err
    assert "begins" not in run("create", "b")[2]
