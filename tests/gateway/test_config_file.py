"""Configuration: faults are told with file, line and key, values with their origin."""

import os
from pathlib import Path

import pytest

from gateway.config import Settings
from gateway.config_file import NOT_SET, ConfigError, configuration_path, load

KEY = "tg_0123456789abcdefghij"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def refused(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load(path)
    return str(error.value)


def test_without_a_file_the_defaults_are_in_force() -> None:
    configuration = load(None)

    assert configuration.settings == Settings()
    assert {value.origin for value in configuration.values()} == {"default"}


def test_the_shipped_file_says_every_setting_and_changes_none() -> None:
    configuration = load(ROOT / "config.toml")

    assert configuration.settings == Settings()
    said = [value for value in configuration.values() if value.shown != NOT_SET]
    not_in_file = [value.key for value in said if value.origin == "default"]
    assert not_in_file == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[server]\nprot = 1\n", 2, ["server.prot", "did you mean 'port'"]),
        ("[sever]\nport = 1\n", 1, ["sever", "did you mean 'server'"]),
        ("# c\n[server]\n\nport = 'x'\n", 4, ["server.port", "valid integer"]),
        ("[server]\nport = 70000\n", 2, ["server.port", "65535"]),
        ("[engines.a]\nkind = 'starter'\nworker = 2\n", 3, ["engines.a.worker", "'workers'"]),
        ("[engines.a]\nkind = 'unheard-of'\n", 1, ["engines.a", "starter"]),
        ("[engines.a]\nkind='starter'\noption_cache = -1\n", 3, ["engines.a.option_cache"]),
        ("[models.m]\nengine = 'nobody'\n", None, ["models.m.engine", "[engines.nobody]"]),
        ("default_model = 'nobody'\n", None, ["default_model", "nobody"]),
        ("[auth.keys]\na = 'written in the file 0123'\n", 2, ["auth.keys.a", "${VARIABLE}"]),
        ("[auth.keys]\na = '${TIERGATE_UNSET}'\n", 2, ["auth.keys.a", "TIERGATE_UNSET"]),
        ("[server]\nhost = '0.0.0.0'\n", None, ["server.host", "[auth.keys]"]),
        ("[server\n", None, ["TOML", "line 1"]),
        ("[models.m]\nengine='starter'\nrelease_date='2026-99-99'\n", 3, ["models.m.release_date"]),
        ("[models.m]\nengine='starter'\nrelease_date='today'\n", 3, ["YYYY-MM-DD"]),
        ("server.port = 'a'\n", 1, ["server.port"]),
        ('[ledger]\npath = "a\\u0000b"\n', 2, ["ledger.path", "NUL"]),
        ('[cascade]\npolicy = "\\u0000"\n', 2, ["cascade.policy", "NUL"]),
        ('[engines.a]\nkind = "laya"\npath = "\\u0000"\n', 3, ["engines.a.path", "NUL"]),
        (f"[watch]\nshadow_tokens_per_day = 0x{'f' * 5000}\n", 2, ["watch.shadow_tokens_per_day"]),
        (f"[engines.a]\nkind = 'scripted'\nmax_tokens = {10**18}\n", 3, ["engines.a.max_tokens"]),
        (f"[server]\nport = [1, {{ a = 0x{'f' * 5000} }}]\n", 2, ["server.port.1.a", "64 bits"]),
        (f"[server]\nport = {-(2**63) - 1}\n", 2, ["server.port", "64 bits"]),
        (
            "[[prices.engines.a]]\neffective = 2026-01-01\nusd_per_hour = 1\n"
            "[[prices.engines.a]]\neffective = 'soon'\nusd_per_hour = 1\n",
            5,
            ["prices.engines.a.1.effective"],
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_key(
    written: Path, text: str, line: int | None, words: list[str]
) -> None:
    message = refused(written, text)

    assert message.startswith(f"{written}:{line}:" if line else str(written))
    for word in words:
        assert word in message


def test_everything_that_is_wrong_is_told_at_once(written: Path) -> None:
    message = refused(written, "[server]\nport = 'x'\nprot = 1\n[log]\nlevel = 'loud'\n")

    assert len(message.splitlines()) == 3


def test_two_models_cannot_share_a_name(written: Path) -> None:
    text = """
[models.a]
engine = "starter"
aliases = ["b"]
[models.b]
engine = "starter"
"""
    assert "'b' is given twice" in refused(written, "default_model='a'\n" + text)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "absent.toml")


def test_a_reference_is_resolved_and_never_shown(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERGATE_TEST_KEY", KEY)
    written.write_text('[server]\nhost="0.0.0.0"\n[auth.keys]\nteam = "${TIERGATE_TEST_KEY}"\n')

    configuration = load(written)

    assert configuration.settings.auth.keys["team"].get_secret_value() == KEY
    shown = {value.key: (value.shown, value.origin) for value in configuration.values()}
    assert shown["auth.keys.team"] == ('"********"', f"{written}:4")
    assert KEY not in repr(configuration)


def test_references_outside_the_keys_stay_text(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERGATE_TEST_KEY", KEY)
    written.write_text('[models.starter]\nengine="starter"\ndescription = "${TIERGATE_TEST_KEY}"\n')

    values = {value.key: value.shown for value in load(written).values()}

    assert values["models.starter.description"] == '"${TIERGATE_TEST_KEY}"'


def test_two_names_cannot_share_a_key(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERGATE_TEST_KEY", KEY)

    message = refused(
        written, '[auth.keys]\na = "${TIERGATE_TEST_KEY}"\nb = "${TIERGATE_TEST_KEY}"\n'
    )

    assert "same key" in message
    assert KEY not in message


@pytest.mark.parametrize("key", ["short", "with a blank in the middle of it", "k" * 600])
def test_a_weak_key_is_refused_and_not_repeated(
    written: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TIERGATE_TEST_KEY", key)

    message = refused(written, '[auth.keys]\nteam = "${TIERGATE_TEST_KEY}"\n')

    assert "'team'" in message
    assert key not in message


def test_values_have_the_line_they_stand_on_as_origin(written: Path) -> None:
    written.write_text("[server]\n# a comment\nport = 9000\n")

    values = {value.key: value for value in load(written).values()}

    assert values["server.port"].origin == f"{written}:3"
    assert values["server.port"].shown == "9000"
    assert values["server.host"].origin == "default"


def test_settings_do_not_change() -> None:
    settings = Settings()

    with pytest.raises(ValueError, match="frozen"):
        settings.server.port = 1  # type: ignore[misc]


def test_the_file_is_the_named_one_then_the_variables_then_the_one_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIERGATE_CONFIG", raising=False)
    assert configuration_path(None) is None
    (tmp_path / "config.toml").touch()
    assert configuration_path(None) == Path("config.toml")
    monkeypatch.setenv("TIERGATE_CONFIG", "/etc/tiergate.toml")
    assert configuration_path(None) == Path("/etc/tiergate.toml")
    assert configuration_path("mine.toml") == Path("mine.toml")


def test_an_empty_name_is_no_reason_to_run_on_the_defaults() -> None:
    with pytest.raises(ConfigError, match="--config names no file"):
        configuration_path("")


def test_a_mark_that_an_editor_put_at_the_beginning_is_no_text(written: Path) -> None:
    written.write_text("[server]\nport = 9000\n", encoding="utf-8-sig")

    assert load(written).settings.server.port == 9000


def test_what_is_no_file_is_refused_before_anybody_waits_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, words in ((pipe, "a pipe"), (tmp_path, "a directory"), ("/dev/zero", "a device")):
        with pytest.raises(ConfigError, match=f"{path}: cannot be read: it is {words}, not a file"):
            load(Path(path))


def test_a_key_in_a_pipe_is_refused_with_its_line(tmp_path: Path, written: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    message = refused(written, f"[auth.keys]\nteam = '${{file:{pipe}}}'\n")

    assert message.startswith(f"{written}:2: auth.keys.team")
    assert "it is a pipe" in message
