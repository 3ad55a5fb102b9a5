"""A gateway that logs everything it can, and a key that must be nowhere."""

import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from gateway import issuing
from gateway.ledger.sqlite import SqliteStore

from .asks import ask
from .configs import SCRIPTED
from .serving import running


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_key_is_in_a_log_at_debug_level_an_answer_or_a_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "ledger.db"
    config = (
        f'{SCRIPTED}\n[ledger]\npath = "{path}"\n'
        f'[log]\nlevel = "debug"\nformat = "{form}"\naccess = true\n'
    )
    with closing(SqliteStore(str(path))) as store:
        wish = {"name": "root", "scopes": ["admin"], "rpm": 40}
        first = issuing.create(store, wish, [], time.time()).minted.text
    said = []
    with running(config, tmp_path) as gateway, httpx.Client(base_url=gateway.url) as http:

        def tell(method: str, where: str, bearer: str, json: object = None) -> httpx.Response:
            headers = {"authorization": f"Bearer {bearer}", "idempotency-key": f"mine-{where}"}
            answer = http.request(method, where, headers=headers, json=json)
            said.append(f"{answer.headers} {answer.text}")
            return answer

        rotated = tell("POST", "/v1/admin/keys/root/rotate", first)
        second = rotated.json()["key"]
        said.clear()  # a new key is shown once, and there
        for bearer in (first, second, f"{second}x", second[:-1]):
            tell("POST", "/v1/systemone", bearer, ask())
            tell("POST", "/v1/systemone", bearer, {"questions": 7})
            for where in (
                "/v1/models",
                "/v1/usage?by=key",
                "/v1/admin/keys",
                "/metrics",
                "/ui/keys",
            ):
                tell("GET", where, bearer)
            tell("POST", "/v1/admin/keys", bearer, {"name": "root"})
        for _ in range(40):
            tell("POST", "/v1/systemone", second, ask())
        log = gateway.log

    stored = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert b"key_wrong" in log.read_bytes()
    assert b"rate_limited" in log.read_bytes()
    for key in (first, second):
        secret = key[14:-1]
        assert secret not in "".join(said)
        assert secret.encode() not in stored  # the log among it
