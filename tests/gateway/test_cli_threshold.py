"""`tiergate threshold translate`: intervals, and what logged answers make of them."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.ledger.sqlite import SqliteStore
from tests.gateway.ledger.decided import SMALL, decided

TRANSLATE = ["threshold", "translate", "--from", "entropy:0.55", "--to", "jev"]


def test_two_options_are_exact_and_more_are_an_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*TRANSLATE, "--json"]) == 0

    lines = {one["options"]: one for one in json.loads(capsys.readouterr().out)}
    assert list(lines) == list(range(2, 11))
    assert lines[2]["low"] == pytest.approx(lines[2]["high"]) == pytest.approx(0.8118, abs=1e-4)
    assert all(lines[n]["low"] < lines[n]["high"] for n in range(3, 11))


def test_a_table_shows_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRANSLATE, "--options", "2"]) == 0

    shown = capsys.readouterr().out
    assert "entropy ≥ 0.55 as jev" in shown
    assert "0.8118" in shown


def test_logged_answers_give_one_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    lines = [{"version": 1, "digest": "d"}, {"key": "k", "refused": "too_long"}]
    lines += [{"log_weights": [i / 10, 0.0, 0.0]} for i in range(60)]
    lines += [{"probabilities": [0.5, 0.5]}]
    log.write_text("\n".join(map(json.dumps, lines)))

    assert main([*TRANSLATE, "--options", "2..3", "--log", str(log), "--json"]) == 0
    two, three = json.loads(capsys.readouterr().out)
    assert (two["answers"], three["answers"]) == (1, 60)
    assert three["alike"] == 1.0
    assert three["kept"] == three["kept_now"]
    assert three["low"] <= three["threshold"] <= three["high"] + 0.05
    assert main([*TRANSLATE, "--options", "3..4", "--log", str(log)]) == 0
    assert "60" in capsys.readouterr().out


def test_the_ledger_is_a_log_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, ledger = tmp_path / "config.toml", tmp_path / "ledger.db"
    config.write_text(f'[ledger]\npath = "{ledger}"\n')
    now_s = time.time()
    with closing(SqliteStore(str(ledger))) as store:
        rows = [decided(decision_id=i, at_s=now_s - 60, looks=(SMALL,)) for i in range(1, 6)]
        rows += [decided(decision_id=9, at_s=now_s - 60, kind="noul", looks=(SMALL,))]
        store.log_decisions(rows, [])

    ask = [*TRANSLATE, "--options", "2", "--log", "--config", str(config)]
    assert main([*ask, "--json"]) == 0
    (two,) = json.loads(capsys.readouterr().out)
    assert two["answers"] == 5
    assert main([*ask, "--since", "10m"]) == 0
    assert main([*ask, "--since", "1m", "--options", "3"]) == 2
    assert "the ledger: no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nonsense", "log.jsonl:1: not valid JSON"),
        ('{"probabilities": ["a"]}', "log.jsonl:1: probabilities: a list of finite numbers"),
        ('{"probabilities": [0.5, 0.5]}', "no answer with 3 to 4 options"),
    ],
)
def test_a_log_of_something_else_is_refused(
    tmp_path: Path, content: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(content)

    assert main([*TRANSLATE, "--options", "3..4", "--log", str(log)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("source", ["entropy", "entropy:1.1", "entropy:x", "other:0.5", "top:-1"])
def test_a_threshold_that_cannot_be_is_a_usage_error(source: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["threshold", "translate", "--from", source, "--to", "jev"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("options", ["1", "5..3", "2..256", "x"])
def test_options_that_cannot_be_are_a_usage_error(options: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*TRANSLATE, "--options", options])
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[]", "an object with probabilities"),
        ("{", "not valid JSON"),
        ('{"probabilities": [NaN, 0.5]}', "probabilities: a list of finite numbers"),
        ('{"probabilities": [-5, 6]}', "probabilities: they are from 0 to 1 and 1 together"),
        ('{"probabilities": [0.5, 0.2]}', "probabilities: they are from 0 to 1 and 1 together"),
        ('{"probabilities": ["0.5", "0.5"]}', "probabilities: a list of finite numbers"),
        ('{"probabilities": [true, false]}', "probabilities: a list of finite numbers"),
        ('{"probabilities": {"a": 1}}', "probabilities: a list is needed"),
        ('{"log_weights": [1e999, 0]}', "log_weights: a list of finite numbers"),
        ('{"log_weights": [null, 0]}', "log_weights: a list of finite numbers"),
        ('{"log_weights": 5}', "log_weights: a list is needed"),
    ],
)
def test_answers_that_are_none_are_refused_with_their_line(
    line: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(f'{{"probabilities": [0.333, 0.667]}}\n\n{line}\n')

    assert main([*TRANSLATE, "--log", str(log)]) == 2
    assert f"{log}:3: {words}" in capsys.readouterr().err


def test_blank_lines_and_marks_inside_of_texts_part_no_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"probabilities": [0.4, 0.6], "note": "a\u2028b"}\n\n', encoding="utf-8")

    assert main([*TRANSLATE, "--options", "2", "--log", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["answers"] == 1
