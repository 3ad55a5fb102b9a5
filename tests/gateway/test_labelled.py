"""Labelled files: what a row says, and how a wrong one is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Choice, Noul, Score
from gateway.config_file import ConfigError
from gateway.labelled import Row, answer_key, load_rows, state_key

DATA = Path(__file__).parents[1] / "data"
QUESTIONS = {
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"a": None, "b": "B"}},
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "mood": {"type": "score", "criteria": ["calm", "angry"]},
}
ROW: dict[str, Any] = {
    "state": "s",
    "questions": QUESTIONS,
    "labels": {"team": "b", "urgent": False, "mood": 1},
}


def written(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    return path


def test_labels_become_indices_of_labels(tmp_path: Path) -> None:
    (row,) = load_rows([written(tmp_path, ROW)])

    assert dict(row.labels) == {"team": 1, "urgent": 1, "mood": 1}
    assert [type(q) for q in row.questions.values()] == [Choice, Noul, Score]
    assert row.place.endswith("rows.jsonl:1")
    assert "rows" in repr(row)
    assert "state" not in repr(row)


def test_named_questions_are_looked_up_beside_the_file_and_shared() -> None:
    rows = load_rows([DATA / "banking77.test.jsonl", DATA / "sms_spam.test.jsonl"])

    assert len(rows) == 1101
    assert len({id(row.questions) for row in rows}) == 2
    assert len(rows[0].questions["intent"].options) == 77  # type: ignore[union-attr]


def test_every_labelled_file_of_the_suite_is_read() -> None:
    for path in sorted(DATA.glob("*.jsonl")):
        assert load_rows([path])


def test_a_row_may_leave_questions_unlabelled_but_not_all(tmp_path: Path) -> None:
    path = written(tmp_path, ROW | {"labels": {"team": "a"}}, ROW | {"labels": {}})

    assert [dict(row.labels) for row in load_rows([path], labels_needed=False)] == [{"team": 0}, {}]
    with pytest.raises(ConfigError, match=r"rows\.jsonl:3: labels: there is none"):
        load_rows([path])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": {"team": "bb"}}, ["labels.team", "did you mean 'b'?"]),
        ({"labels": {"urgent": "yes"}}, ["labels.urgent", "true or false"]),
        ({"labels": {"mood": 2}}, ["labels.mood", "from 0 to 1"]),
        ({"labels": {"mood": True}}, ["labels.mood", "from 0 to 1"]),
        ({"labels": {"other": 1}}, ["labels.other", "no such question"]),
        ({"labels": [1]}, ["labels", "an object"]),
        ({"state": 5}, ["state", "a string"]),
        ({"questions": "team"}, ["questions", "'@name'"]),
        ({"questions": {"q": {"type": "x"}}}, ["questions.q", "Unknown question type"]),
        ({"questions": {}}, ["questions"]),
        ({"questions": "@team"}, ["questions.json", "cannot be read"]),
    ],
)
def test_a_wrong_row_is_refused_with_file_line_and_key(
    tmp_path: Path, change: dict[str, Any], words: list[str]
) -> None:
    path = written(tmp_path, ROW, ROW | change)

    with pytest.raises(ConfigError) as refused:
        load_rows([path])

    for word in (f"{path}:3" if "@team" not in str(change) else "", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no rows"), ("{", "jsonl:1: not valid JSON"), ("[]", "an object"), ("{}", "state")],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)

    with pytest.raises(ConfigError, match=words):
        load_rows([path])


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps({"desk": QUESTIONS}))

    with pytest.raises(ConfigError, match="did you mean '@desk'"):
        load_rows([written(tmp_path, ROW | {"questions": "@dask"})])


def csv_rows(tmp_path: Path, text: str) -> list[Row]:
    (tmp_path / "questions.json").write_text(json.dumps({"desk": QUESTIONS}))
    path = tmp_path / "desk.csv"
    path.write_text(text, encoding="utf-8")
    return load_rows([path])


def test_a_csv_says_the_same_as_jsonl(tmp_path: Path) -> None:
    (jsonl,) = load_rows([written(tmp_path, ROW)])

    text = '\ufeffstate,team,urgent,mood,_note\n"s",b,No,1,x\n"two\nlines",,yes,,\n'
    one, two = csv_rows(tmp_path, text)

    assert (one.state, one.questions, one.labels) == (jsonl.state, jsonl.questions, jsonl.labels)
    assert (two.state, dict(two.labels)) == ("two\nlines", {"urgent": 0})
    assert two.place.endswith("desk.csv:4")


def test_columns_of_a_csv_may_make_up_the_state(tmp_path: Path) -> None:
    (row,) = csv_rows(tmp_path, "state.from,state.body,team\nme,hello,a\n")

    assert row.state == {"from": "me", "body": "hello"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("team\na\n", "columns 'state.NAME' are needed"),
        ("state,state.x,team\na,b,a\n", "are needed"),
        ("state,team,team\ns,a,a\n", "two columns 'team'"),
        ("state,tean\ns,a\n", "'tean' is no question"),
        ("state,team\ns\n", r"csv:2: 1 cells, but there are 2"),
        ("state,team\ns,c\n", r"csv:2: labels.team"),
        ("state,mood\ns,one\n", r"csv:2: labels.mood"),
        ('state,team\n"s,a\n', "not valid CSV"),
        ("", "no rows"),
        ("state,team\ns,\n", r"csv:2: labels: there is none"),
    ],
)
def test_a_wrong_csv_is_refused_with_line_and_column(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        csv_rows(tmp_path, text)


def test_equal_states_have_equal_keys_whatever_the_order_of_their_names(tmp_path: Path) -> None:
    one, two, three = load_rows(
        [
            written(
                tmp_path,
                ROW | {"state": {"a": 1, "b": [2]}},
                ROW | {"state": {"b": [2], "a": 1}, "labels": {"team": "a"}},
                ROW | {"state": {"a": 1, "b": [3]}},
            )
        ]
    )

    assert state_key(one.state) == state_key(two.state) != state_key(three.state)
    assert answer_key(one, "team") == answer_key(two, "team")
    assert answer_key(one, "team") != answer_key(one, "urgent")


def test_a_state_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"state": "s \\ud800", "labels": {"q": true},'
        ' "questions": {"q": {"type": "noul", "instructions": "x"}}}\n'
    )

    with pytest.raises(ConfigError, match=r"rows\.jsonl:1: state: it has half of a surrogate"):
        load_rows([path])


NOUL = '{"q": {"type": "noul", "instructions": "x"}}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"state": "s", "questions": {"q\\ud800": {"type": "noul"}}}', "questions: it has half"),
        ('{"state": "s", "questions": {"q": {"type": "x\\ud800"}}}', "questions: it has half"),
        (f'{{"state": "s", "questions": {NOUL}, "labels": {{"\\ud800": true}}}}', "labels"),
        ('{"state": "s", "questions": "@q\\ud800"}', "questions"),
        (f'{{"state": {{"n": NaN}}, "questions": {NOUL}}}', "state: it has NaN"),
        (f'{{"state": [1e999], "questions": {NOUL}}}', "state: it has NaN or an endless number"),
    ],
)
def test_what_no_request_could_say_is_refused_with_file_line_and_key(
    tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")

    with pytest.raises(ConfigError, match=rf"{path}:1: {words}"):
        load_rows([path], labels_needed=False)


def test_rows_may_come_through_what_the_shell_made_and_through_nothing_else_that_is_no_file(
    tmp_path: Path,
) -> None:
    named = tmp_path / "rows.jsonl"
    os.mkfifo(named)
    reads, writes = os.pipe()
    os.write(writes, json.dumps(ROW).encode())
    os.close(writes)

    (row,) = load_rows([Path(f"/dev/fd/{reads}")])
    os.close(reads)

    assert row.state == "s"
    with pytest.raises(ConfigError, match=f"{named}: cannot be read: it is a pipe, not a file"):
        load_rows([named])
