"""Keys on the page: made, used, changed and ended, or refused with a sentence."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import ASK, Gateway, ledger_settings
from tests.gateway.dashboard.browsing import admin_key, log_in, send, text

ALERT = "<script>alert(1)</script>'\"&"


async def test_the_life_of_a_key_on_the_page(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    admin = admin_key(settings)

    def secret(page: httpx.Response) -> dict[str, str]:
        found = page.text.partition('id="secret" data-copy>')[2].partition("<")[0]
        return {"authorization": f"Bearer {found}"}

    with gateway(settings) as client:

        async def status(key: dict[str, str]) -> int:
            return (await client.post("/v1/systemone", json=ASK, headers=key)).status_code

        async def done(path: str, origin: str, **fields: Any) -> httpx.Response:
            answer = await send(client, path, origin, **fields)
            assert answer.status_code == 303, text(answer)
            return await client.get(answer.headers["location"])

        await log_in(client, admin)
        fields = {"name": "team", "scopes": ["decide"], "models": ["jev-latest"], "rpm": "1,000"}
        made = await done("/ui/keys", "/ui/keys", **fields, expires="90d", confidence="top")
        old = secret(made)
        assert await status(old) == 200

        new = secret(await done("/ui/keys/team/rotate", "/ui/keys/team"))
        assert await status(old) == await status(new) == 200

        await done("/ui/keys/team/limits", "/ui/keys/team", tokens_per_day="0")
        assert await status(new) == 429

        unsure = await send(client, "/ui/keys/team/revoke", "/ui/keys/team")
        assert unsure.status_code == 400
        await done("/ui/keys/team/revoke", "/ui/keys/team", sure="yes")
        assert await status(old) == await status(new) == 401

        listed = await client.get("/v1/admin/keys/team", headers=_bearer(admin))
        page = await client.get("/ui/keys/team")

    key = listed.json()
    assert key["limits"]["rpm"] is None  # the form says all of them, and this field was empty
    assert key["limits"]["tokens_per_day"] == 0
    assert (key["models"], key["scopes"], key["confidence"]) == (["jev-latest"], ["decide"], "top")
    assert key["state"] == "revoked"
    assert "revoked" in text(page)
    assert "A revoked key has no use for limits" in text(page)
    assert "Change limits" not in text(page)


async def test_keys_in_force_stand_first_and_scopes_say_what_they_are_for(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    names = ("zebra", "Ant", "gone", "bee")
    keys = {name: admin_key(settings, name) for name in names}
    with gateway(settings) as client:
        await client.post("/v1/admin/keys/gone/revoke", headers=_bearer(keys["bee"]))
        await log_in(client, keys["bee"])
        page = await client.get("/ui/keys")

    assert re.findall(r'href="/ui/keys/(\w+)"', page.text) == ["Ant", "bee", "zebra", "gone"]
    assert "admin everything, for all keys" in text(page)
    assert "entropy: 1 − H / log n" in text(page)


@pytest.mark.parametrize(
    ("wish", "status", "sentence"),
    [
        ({"name": "a b"}, 422, "a key's name is"),
        ({"name": "root"}, 409, "a key named 'root' already"),
        ({"name": "new", "rpm": "-1"}, 422, "rpm must be a whole number"),
        ({"name": "new", "usd_per_day": "2"}, 422, "a money budget needs prices"),
        ({"name": "new", "rpm": "2,50"}, 422, "rpm must be a whole number"),
        ({"name": "new", "expires": "soon"}, 422, "not a duration"),
        ({"name": ALERT}, 422, "a key's name is"),
    ],
)
async def test_a_wish_that_cannot_be_granted_stands_above_its_form(
    gateway: Gateway, tmp_path: Path, wish: dict[str, str], status: int, sentence: str
) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        response = await send(client, "/ui/keys", scopes="decide", **wish)

    assert response.status_code == status
    assert sentence in text(response)
    assert 'role="alert"' in response.text
    assert ALERT not in response.text
    if wish["name"] == "new":
        assert 'value="new"' in response.text


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/ui/keys/nobody/revoke", {"sure": "yes"}, 404),
        ("/ui/keys/nobody/rotate", {}, 404),
        ("/ui/keys/root/limits", {"tpm": "many"}, 422),
        ("/ui/keys/root/rotate", {}, 422),
    ],
)
async def test_what_cannot_be_done_to_a_key_says_why(
    gateway: Gateway, tmp_path: Path, path: str, fields: dict[str, str], status: int
) -> None:
    settings = ledger_settings(tmp_path)
    key, other = admin_key(settings), admin_key(settings, "other")
    with gateway(settings) as client:
        await log_in(client, other)
        if status == 422 and path.endswith("rotate"):
            await client.post("/v1/admin/keys/root/revoke", headers=_bearer(key))
        response = await send(client, path, "/ui/keys", **fields)

    assert response.status_code == status


@pytest.mark.parametrize(
    "body",
    [b"\xff", b"a=1&" * 600, b"token=" + 70_000 * b"x"],
    ids=["no UTF-8", "too many fields", "too long"],
)
async def test_a_form_that_is_none_is_a_4xx(gateway: Gateway, tmp_path: Path, body: bytes) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        for path in ("/ui/keys", "/ui/login"):
            response = await client.post(path, content=body)
            assert 400 <= response.status_code < 500


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}
