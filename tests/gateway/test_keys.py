"""Keys: made, used, rotated, ended; by the command line, over HTTP, and on the wire."""

import json
import logging
import time
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.keys import digest, mint, prefix_of, seconds_of
from tests.gateway.conftest import ASK, Gateway, bearer, charged, ledger_settings

PATH = "/v1/systemone"
CONFIG = """
default_model = "scripted-1"
[ledger]
path = "{path}"
[engines.scripted]
kind = "scripted"
[models.scripted-1]
engine = "scripted"
aliases = ["jev-latest"]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(path=tmp_path / "ledger.db"))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = main(["keys", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_key_has_256_random_bits_and_a_public_prefix() -> None:
    one, two = mint("k_1", 0.0), mint("k_1", 0.0)

    assert one.text.startswith("tg_")
    assert len(one.text.removeprefix(f"tg_{one.secret.prefix}_")) == 43  # 256 bits in base64url
    assert one.text != two.text
    assert one.text not in repr(one)
    assert prefix_of(one.text.encode()) == one.secret.prefix
    assert one.secret.digest == digest(one.text.encode())


@pytest.mark.parametrize(("text", "seconds"), [("90d", 7_776_000), ("24h", 86_400), ("1s", 1)])
def test_durations_have_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["90", "d", "-1d", "0d", "1.5h", "1y", ""])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds_of(text)


async def test_the_life_of_a_key_from_the_command_line(
    gateway: Gateway, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ledger_settings(tmp_path)
    code, old, told = run(
        capsys, "create", "team", "--config", config, "--rpm", "99", "--tokens-per-day", "5000"
    )
    assert code == 0
    assert "shown once" in told
    with gateway(settings) as client:

        async def status(text: str) -> int:
            headers = {"authorization": f"Bearer {text.strip()}"}
            return (await client.post(PATH, json=ASK, headers=headers)).status_code

        assert await status(old) == 200
        _, new, _ = run(capsys, "rotate", "team", "--config", config)
        assert await status(old) == await status(new) == 200

        run(capsys, "limits", "team", "--config", config, "--rpm", "none", "--tpm", "0")
        assert await status(new) == 429
        run(capsys, "limits", "team", "--config", config, "--tpm", "none")
        assert await status(new) == 200

        assert run(capsys, "revoke", "team", "--config", config)[0] == 0
        assert await status(old) == await status(new) == 401

    _, shown, _ = run(capsys, "info", "team", "--config", config, "--json")
    info = json.loads(shown)
    assert info["state"] == "revoked"
    assert info["limits"] | {"tokens_per_day": 5000, "rpm": None, "tpm": None} == info["limits"]
    assert len(info["secrets"]) == 2
    assert info["secrets"][0]["expires"] is not None
    assert old.strip() not in shown
    assert len(charged(settings)) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "a b"), "a key's name is"),
        (("create", "a", "--expires", "soon"), "not a duration"),
        (("create", "a", "--models", "gpt-9"), "there is no model 'gpt-9'"),
        (("create", "a", "--scopes", "root"), "scopes are some of"),
        (("create", "a", "--rpm", "-1"), "rpm must be a whole number"),
        (("create", "a", "--usd-per-day", "1"), "a money budget needs prices"),
        (("create", "taken"), "a key named 'taken' already"),
        (("info", "nobody"), "no key named 'nobody'"),
        (("rotate", "gone"), "is revoked"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    config: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    for name in ("taken", "gone"):
        run(capsys, "create", name, "--config", config)
    run(capsys, "revoke", "gone", "--config", config)

    code, out, err = run(capsys, *arguments, "--config", config)

    assert (code, out) == (2, "")
    assert sentence in err


def test_without_a_ledger_there_are_no_keys_to_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.toml"
    path.write_text("")

    assert run(capsys, "create", "a", "--config", str(path))[0] == 2


def test_a_ledger_that_cannot_be_opened_is_the_environments_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(path=tmp_path / "nowhere" / "ledger.db"))

    code, _, err = run(capsys, "list", "--config", str(path))

    assert code == 4
    assert "nowhere" not in err


def test_others_are_not_served_without_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        CONFIG.format(path=tmp_path / "ledger.db") + '[server]\nhost = "0.0.0.0"\nport = 0\n'
    )

    assert main(["serve", "--config", str(path)]) == 2
    assert "there are no keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 403),
        ("", 403),
        ("Bearer", 403),
        ("Basic abc", 403),
        ("Bearer tg_0123456789_" + 43 * "x", 401),
        ("Bearer {key}x", 401),
        ("bEARER   {key}  ", 200),
        ("\tBearer\t{key}\t", 200),
    ],
)
async def test_the_wire_says_403_for_no_key_and_401_for_a_wrong_one(
    gateway: Gateway, tmp_path: Path, authorization: str | None, status: int
) -> None:
    settings = ledger_settings(tmp_path)
    text = bearer(settings)["authorization"].removeprefix("Bearer ")
    headers = {}
    if authorization is not None:
        headers["authorization"] = authorization.format(key=text)
    with gateway(settings) as client:
        for response in (
            await client.post(PATH, json=ASK, headers=headers),
            await client.get("/v1/models", headers=headers),
        ):
            assert response.status_code == status
            if status != 200:
                assert response.json()["detail"]["error_type"] == "authentication_error"


async def test_a_key_without_the_right_is_403(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    usage, other, bound = (
        bearer(settings, "usage", scopes=["usage"]),
        bearer(settings, "other"),
        bearer(settings, "bound", models=["jev-latest"]),
    )
    with gateway(settings) as client:
        refused = [
            await client.post(PATH, json=ASK, headers=usage),
            await client.get("/v1/admin/keys", headers=other),
            await client.post(PATH, json=ASK | {"model": "scripted-1"}, headers=bound),
        ]
        allowed = await client.post(PATH, json=ASK, headers=bound)

    assert [one.status_code for one in refused] == [403, 403, 403]
    assert {one.json()["detail"]["error_type"] for one in refused} == {"authentication_error"}
    assert allowed.status_code == 200


async def test_an_expired_key_is_401(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, expires="1h")
    now_s = time.time()
    with gateway(settings) as client:
        before = await client.post(PATH, json=ASK, headers=key)
        monkeypatch.setattr("gateway.app.time.time", lambda: now_s + 3601)
        after = await client.post(PATH, json=ASK, headers=key)

    assert (before.status_code, after.status_code) == (200, 401)


async def test_the_confidence_is_by_the_formula_of_the_key(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    keys = {name: bearer(settings, name, confidence=name) for name in ("jev", "top", "margin")}
    with gateway(settings) as client:
        answers = {
            name: (await client.post(PATH, json=ASK, headers=key)).json()["answers"]["team"]
            for name, key in keys.items()
        }

    first, second = sorted(answers["jev"]["probabilities"].values(), reverse=True)
    assert answers["top"]["confidence"] == first
    assert answers["margin"]["confidence"] == pytest.approx(first - second, abs=1e-6)
    assert answers["jev"]["confidence"] == pytest.approx(2 * first - 1, abs=1e-6)


async def test_nothing_secret_is_logged_answered_or_stored(
    gateway: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000)
    text = key["authorization"].removeprefix("Bearer ")
    secret = text.rpartition("_")[2] if text.count("_") == 2 else text[14:]
    said = []
    with gateway(settings) as client:
        for headers in (key, key | {"authorization": f"Bearer {text}x"}, key | {"x-y": "z"}):
            for path in (PATH, "/v1/models", "/v1/usage", "/v1/admin/keys", "/ready", "/nowhere"):
                for method in ("GET", "POST"):
                    answer = await client.request(method, path, json=ASK, headers=headers)
                    said.append(answer.text + str(answer.headers))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert secret not in "".join(said)
    assert secret not in caplog.text
    assert secret.encode() not in stored
    assert text.encode() not in stored
