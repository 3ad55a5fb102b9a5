"""What pages give away and to whom: headers, machines without keys, secrets."""

import logging
from pathlib import Path

import pytest

from gateway.config_dashboard import DashboardSection
from tests.gateway.conftest import ASK, Gateway, ledger_settings, settings_of
from tests.gateway.dashboard.browsing import admin_key, local, log_in, send, text
from tests.gateway.dashboard.test_login import PAGES


async def test_every_page_says_what_a_browser_may_do(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        responses = [await client.get("/ui"), await client.get("/ui/login")]
        responses.append(await log_in(client, key))
        responses += [await client.get(path) for path in PAGES]
        responses.append(await client.get("/ui/static/page.js"))
        responses.append(await client.get("/ui/static/nothing.js"))

    for response in responses:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
    assert (responses[0].status_code, responses[2].status_code) == (303, 303)
    for page in responses[:-2]:
        assert page.headers["cache-control"] == "no-store"
    for page in responses[3:-2]:
        for inline in ("<script>", "<style", " style=", " onclick=", "javascript:"):
            assert inline not in page.text
        assert "://" not in page.text.replace("http://gateway", "")


async def test_without_keys_the_page_is_open_to_this_machine_alone(
    gateway: Gateway, tmp_path: Path
) -> None:
    with gateway(ledger_settings(tmp_path)) as client:
        elsewhere = await client.get("/ui")  # by a name that is not this machine's
        login = await client.get("/ui/login")
        with local(client):
            home = await client.get("/ui")
            keys = await client.get("/ui/keys")
            key = await client.get("/ui/keys/any")
            made = await send(client, "/ui/keys", "/ui/playground", name="x", scopes="admin")
            to_home = await client.get("/ui/login")

    assert (elsewhere.status_code, login.status_code) == (403, 403)
    assert (home.status_code, keys.status_code, key.status_code) == (200, 200, 403)
    assert "tiergate keys create" in text(keys)
    assert made.status_code == 403
    assert to_home.headers["location"] == "/ui"


async def test_the_first_key_closes_the_open_page(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    with gateway(settings) as client, local(client):
        before = await client.get("/ui")
        admin_key(settings)
        after = await client.get("/ui")

    assert before.status_code == 200
    assert after.headers["location"] == "/ui/login"


async def test_the_page_can_be_switched_off(gateway: Gateway) -> None:
    with gateway(settings_of(dashboard=DashboardSection(enabled=False))) as client, local(client):
        response = await client.get("/ui")

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/json"


async def test_no_secret_is_logged_stored_or_shown_twice(
    gateway: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key + "x")
        await log_in(client, key)
        cookie = client.cookies["tiergate_ui"]
        await send(client, "/ui/keys", name="team", scopes="decide")
        shown = await client.get("/ui/keys/team")
        again = await client.get("/ui/keys/team")
        pages = [(await client.get(path)).text for path in PAGES]
    made = shown.text.partition('id="secret" data-copy>')[2].partition("<")[0]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert made.startswith("tg_")
    for secret in (key, made, cookie):
        assert secret not in caplog.text
        assert secret.encode() not in stored
        assert secret not in again.text + "".join(pages)
    assert "a login failed" in caplog.text
    (opened,) = [record for record in caplog.records if record.getMessage() == "a login"]
    assert opened.__dict__["key"].startswith("k_")
    assert opened.__dict__["client"] == "127.0.0.1"


async def test_a_cookie_opens_no_door_of_the_api(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        cookie = {"cookie": f"tiergate_ui={client.cookies['tiergate_ui']}"}
        asked = await client.post("/v1/systemone", json=ASK, headers=cookie)
        listed = await client.get("/v1/admin/keys", headers=cookie)

    assert (asked.status_code, listed.status_code) == (403, 403)
