"""The admin routes: what the command line does, for keys with the scope."""

import json
from pathlib import Path
from typing import Any

from tests.gateway.conftest import ASK, Gateway, bearer, ledger_settings

PATH = "/v1/systemone"


async def test_admin_routes_do_what_the_command_line_does(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    admin = bearer(settings, "root", scopes=["admin"])
    with gateway(settings) as client:

        async def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            response = await client.request(
                method, f"/v1/admin/keys{path}", json=body, headers=admin
            )
            assert response.status_code >= 400 or response.headers["cache-control"] == "no-store"
            return response.status_code, response.json()

        status, made = await call("POST", "", {"name": "team", "rpm": 5, "scopes": ["decide"]})
        assert status == 201
        key = {"authorization": f"Bearer {made['key']}"}
        assert (await client.post(PATH, json=ASK, headers=key)).status_code == 200
        assert (await call("POST", "", {"name": "team"}))[0] == 409
        assert (await call("POST", "", {"name": "team2", "rpm": -1}))[0] == 422
        assert (await call("POST", "", {"name": "team2", "colour": 1}))[0] == 422
        assert (await call("POST", "", {"name": "x" * 70_000}))[0] == 413
        assert (await call("GET", "/team"))[1]["limits"]["rpm"] == 5
        assert (await call("GET", "/nobody"))[0] == 404
        status, changed = await call("PATCH", "/team/limits", {"rpm": None, "tokens_per_day": 0})
        assert changed["limits"]["rpm"] is None
        assert (await client.post(PATH, json=ASK, headers=key)).status_code == 429
        assert (await call("POST", "/team/rotate"))[1]["key"].startswith("tg_")
        assert (await call("POST", "/team/revoke"))[1]["state"] == "revoked"
        assert (await client.post(PATH, json=ASK, headers=key)).status_code == 401
        listed = (await call("GET", ""))[1]["keys"]

    assert [one["name"] for one in listed] == ["root", "team"]
    assert "digest" not in json.dumps(listed)


async def test_admin_routes_are_closed_without_keys_and_without_a_ledger(
    gateway: Gateway, tmp_path: Path
) -> None:
    with gateway(ledger_settings(tmp_path)) as keyless:
        assert (await keyless.get("/v1/admin/keys")).status_code == 403
    with gateway() as bare:
        assert (await bare.get("/v1/admin/keys")).status_code == 403


async def test_a_method_that_is_not_there_is_told_which_are(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    admin = bearer(settings, "root", scopes=["admin"])
    with gateway(settings) as client:
        refused = {
            path: await client.request("PUT", f"/v1/admin/keys{path}", headers=admin)
            for path in ("", "/root", "/root/rotate", "/root/limits")
        }

    assert {one.status_code for one in refused.values()} == {405}
    allowed = {path: set(one.headers["allow"].split(", ")) for path, one in refused.items()}
    assert allowed == {
        "": {"GET", "HEAD", "POST"},
        "/root": {"GET", "HEAD"},
        "/root/rotate": {"POST"},
        "/root/limits": {"PATCH"},
    }
