"""Who may see the pages: logins, cookies, tokens, and what a stranger gets."""

import sqlite3
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config import AuthSection
from gateway.config_dashboard import DashboardSection
from gateway.dashboard.visits import LOGINS_PER_MINUTE, Visits
from gateway.errors import Refusal
from tests.gateway.conftest import Gateway, bearer, ledger_settings, settings_of
from tests.gateway.dashboard.browsing import admin_key, log_in, send, text, token

PAGES = (
    "/ui",
    "/ui/",
    "/ui/decisions",
    "/ui/keys",
    "/ui/keys/root",
    "/ui/playground",
    "/ui/nowhere",
)


async def test_a_stranger_is_sent_to_the_login_page(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    admin_key(settings)
    with gateway(settings) as client:
        for path in PAGES:
            response = await client.get(path)

            assert (response.status_code, response.headers["location"]) == (303, "/ui/login")
        assert (await client.post("/ui/keys", data={"name": "mine"})).status_code == 403


async def test_an_admin_logs_in_looks_and_logs_out(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        response = await log_in(client, f"  {key} ")
        seen = {path: (await client.get(path)).status_code for path in PAGES}
        left = await send(client, "/ui/logout", "/ui")
        after = await client.get("/ui")

    assert (response.status_code, response.headers["location"]) == (303, "/ui")
    assert seen == {path: 404 if path == "/ui/nowhere" else 200 for path in PAGES}
    assert (left.status_code, left.headers["location"]) == (303, "/ui/login")
    assert after.headers["location"] == "/ui/login"


async def test_the_cookie_is_kept_from_scripts_other_sites_and_other_paths(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        plain = await log_in(client, key)
        page = await client.get("/ui/login", headers={"cookie": "", "x-forwarded-proto": "https"})

    morsel = SimpleCookie(plain.headers["set-cookie"])["tiergate_ui"]
    assert len(morsel.value) == 43  # 256 bits in base64url
    assert (morsel["path"], morsel["samesite"], morsel["httponly"]) == ("/ui", "strict", True)
    assert not morsel["secure"]
    assert SimpleCookie(page.headers["set-cookie"])["tiergate_ui"]["secure"]


async def test_a_login_gets_another_cookie_than_the_stranger_had(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        page = await client.get("/ui/login")
        before = client.cookies["tiergate_ui"]
        await client.post("/ui/login", data={"token": token(page), "key": key})

    assert client.cookies["tiergate_ui"] != before


@pytest.mark.parametrize(
    ("wish", "status", "sentence"),
    [
        ({"scopes": ["decide", "usage"]}, 403, "Only a key with the scope 'admin'"),
        (None, 401, "The API key is not valid."),
    ],
)
async def test_other_keys_open_nothing(
    gateway: Gateway,
    tmp_path: Path,
    wish: dict[str, list[str]] | None,
    status: int,
    sentence: str,
) -> None:
    settings = ledger_settings(tmp_path)
    admin_key(settings)
    key = "tg_0123456789_" + 43 * "x"
    if wish is not None:
        key = bearer(settings, "team", **wish)["authorization"].removeprefix("Bearer ")
    with gateway(settings) as client:
        response = await log_in(client, key)
        after = await client.get("/ui")

    assert response.status_code == status
    assert sentence in text(response)
    assert key not in response.text
    assert after.headers["location"] == "/ui/login"


async def test_keys_of_the_configuration_are_no_admins(gateway: Gateway, tmp_path: Path) -> None:
    key = "static-key-0123456789abcdef"
    auth = AuthSection.model_validate({"keys": {"team": key}})
    settings = ledger_settings(tmp_path).model_copy(update={"auth": auth})
    with gateway(settings) as client:
        response = await log_in(client, key)
    with gateway(settings_of(auth=auth)) as client:
        without_ledger = await client.get("/ui/login")

    assert response.status_code == 403
    assert "Nobody can log in here" in text(without_ledger)


async def test_tries_to_log_in_are_limited(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        page = await client.get("/ui/login")
        wrong = {"token": token(page), "key": "wrong"}
        tries = [
            (await client.post("/ui/login", data=wrong)).status_code
            for _ in range(LOGINS_PER_MINUTE)
        ]
        late = await client.post("/ui/login", data=wrong | {"key": key})

    assert 401 not in tries[1:]  # each answer brings another cookie, and the form is the first's
    assert late.status_code == 429
    assert "Too many tries" in text(late)


def test_tries_are_counted_by_address_and_by_network_for_ipv6() -> None:
    visits = Visits(60.0)
    for number in range(LOGINS_PER_MINUTE):
        visits.admit_try(f"2001:db8::{number:x}", 0.0)

    with pytest.raises(Refusal, match="Too many tries"):
        visits.admit_try("2001:db8::ffff", 0.0)
    visits.admit_try("2001:db8:0:1::1", 0.0)
    visits.admit_try("192.0.2.1", 0.0)
    visits.admit_try("2001:db8::1", 60.0)


async def test_a_revoked_key_ends_its_sessions_with_the_next_page(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key, other = admin_key(settings), {"authorization": f"Bearer {admin_key(settings, 'other')}"}
    with gateway(settings) as client:
        await log_in(client, key)
        before = await client.get("/ui")
        await client.post("/v1/admin/keys/root/revoke", headers=other)
        page = await client.get("/ui")
        form = await client.post("/ui/keys", data={"token": token(before), "name": "late"})

    assert (before.status_code, page.headers.get("location")) == (200, "/ui/login")
    assert form.status_code == 401


async def test_a_session_ends_with_its_hours(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    short = settings.model_copy(update={"dashboard": DashboardSection(session_hours=1e-9)})
    with gateway(short) as client:
        await log_in(client, key)
        after = await client.get("/ui")

    assert after.headers["location"] == "/ui/login"


@pytest.mark.parametrize("lack", ["token", "cookie", "site", "other_cookie"])
async def test_a_form_from_elsewhere_changes_nothing(
    gateway: Gateway, tmp_path: Path, lack: str
) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        page = await client.get("/ui/keys")
        fields = {"token": token(page), "name": "evil", "scopes": "admin"}
        headers: dict[str, str] = {}
        if lack == "token":
            fields["token"] = "0" * 64
        elif lack == "site":
            headers["sec-fetch-site"] = "cross-site"
        elif lack == "cookie":
            client.cookies.clear()
        else:
            client.cookies.clear()
            await log_in(client, key)  # another session; the form is the first one's
        response = await client.post("/ui/keys", data=fields, headers=headers)
        listed = await client.get("/v1/admin/keys", headers={"authorization": f"Bearer {key}"})

    assert response.status_code == 403
    assert [one["name"] for one in listed.json()["keys"]] == ["root"]


def test_what_stands_for_a_login_says_nothing_of_the_key() -> None:
    visits = Visits(60.0)
    cookie = visits.open("0123456789")
    session = visits.session(cookie)

    assert session is not None
    assert session.prefix == "0123456789"
    assert visits.session(cookie + "x") is None
    assert visits.fits(cookie, visits.token(cookie))
    assert not visits.fits("", visits.token(""))
    assert not visits.fits(cookie, "é")


async def test_a_ledger_that_cannot_be_read_is_said_so(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        with closing(sqlite3.connect(settings.ledger.path)) as connection:
            connection.execute("DROP TABLE steps_daily")
        response = await client.get("/ui")

    assert response.status_code == 503
    assert "ledger" in text(response)


def test_a_session_of_no_length_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[dashboard]\nsession_hours = 0\n")

    assert main(["check", "--config", str(path)]) == 2
    assert "dashboard.session_hours" in capsys.readouterr().err
