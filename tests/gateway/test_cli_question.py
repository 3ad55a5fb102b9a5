"""`tiergate question check`: engines with a known weakness are caught, sound ones are not."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engines.contract import Choice, Noul, Question, Text
from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.cli import main
from gateway.probing import Probe, Verdict, probed
from policies.cells import fingerprint

TEAM = Choice({"billing": "Payments", "tech": "Bugs", "other": None}, "Which team?")


def verdict(engine: ScriptedEngine, probe: Probe) -> list[Verdict]:
    lane = Lane("under-test", engine, rows(1), max_waiting=64)
    told: list[tuple[int, int]] = []
    try:
        found = asyncio.run(probed([lane], probe, lambda *both: told.append(both)))
    finally:
        lane.close(drain_s=5.0)
    assert told[-1][0] == told[-1][1] == len(told)
    return found


def test_a_sound_engine_stands_every_test() -> None:
    (found,) = verdict(ScriptedEngine(), Probe({"team": TEAM}, ["a bill", "a bug"]))

    assert found.faults == []
    assert [(one.test, one.flips) for one in found.tests] == [
        ("order", 0),
        ("id", 0),
        ("neighbours", 0),
    ]


def test_an_engine_that_likes_the_first_option_is_caught() -> None:
    def first(_: Text, question: Question) -> Sequence[float]:
        return (
            [2.0, *[0.0] * (len(question.options) - 1)] if isinstance(question, Choice) else [0, 0]
        )

    (found,) = verdict(ScriptedEngine(script=first), Probe({"team": TEAM}))

    order = found.tests[0]
    assert order.flips == order.asked == 12
    assert order.place == 0
    assert order.bias is not None
    assert order.bias > 0.3
    assert len(found.faults) == 2


def test_an_engine_that_says_yes_to_everything_contradicts_itself() -> None:
    probe = Probe({"urgent": Noul("Is it urgent?"), "calm": Noul("Can it wait?")}, ["now!"])

    found = verdict(ScriptedEngine(script=lambda *_: [1.0, 0.0]), probe)

    assert [len(one.faults) for one in found] == [1, 1]


def test_opposites_of_ones_own_are_asked_instead_of_made_up_ones() -> None:
    asked: list[Question] = []

    def script(_: Text, question: Question) -> Sequence[float]:
        asked.append(question)
        return [1.0, 0.0] if question == Noul("Is it urgent?") else [0.0, 1.0]

    questions: dict[str, Question] = {"urgent": Noul("Is it urgent?"), "calm": Noul("Can it wait?")}
    found = verdict(
        ScriptedEngine(script=script),
        Probe(questions, ["now!"], {"urgent": "calm", "calm": "urgent"}),
    )

    assert [one.faults for one in found] == [[], []]
    assert not any("answer to this question" in str(one) for one in asked)


def test_what_an_engine_cannot_read_is_told_and_no_finding() -> None:
    (found,) = verdict(ScriptedEngine(max_tokens=2), Probe({"team": TEAM}, ["one two three"]))

    assert found.tests == ()
    assert set(found.unread) == {"too_long"}
    assert found.faults == []


def test_findings_are_exit_code_1_and_json_says_them(
    config: str, questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = tmp_path / "states.jsonl"
    states.write_text('{"state": "a"}\n{"state": {"b": 1}}\n{"state": "c"}\n')
    arguments = ["question", "check", questions, "--config", config]

    code = main([*arguments, "--states", str(states), "--limit", "2", "-s", "d", "--json"])

    found = {one["question"]: one for one in json.loads(capsys.readouterr().out)}
    assert code == 1
    assert set(found) == {"team", "urgent", "mood"}
    assert found["team"]["tests"]["order"]["asked"] == 3
    assert found["team"]["tests"]["order"]["flips"] == 0
    assert found["mood"]["findings"] == []
    assert found["urgent"]["fingerprint"] == fingerprint(Noul("Is it urgent?"))


def test_every_engine_of_a_cascade_is_tried(
    tmp_path: Path, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "cascade.toml"
    engines = "".join(f'[engines.{name}]\nkind = "scripted"\n' for name in ("small", "large", "no"))
    models = '[models.both]\ntiers = ["small", "large"]\n[models.other]\nengine = "no"\n'
    config.write_text(f'default_model = "both"\n{engines}{models}')

    main(["question", "check", questions, "--config", str(config), "--json"])

    found = json.loads(capsys.readouterr().out)
    assert [(one["question"], one["engine"]) for one in found[:3]] == [
        ("team", "small"),
        ("team", "large"),
        ("urgent", "small"),
    ]
    assert len(found) == 6


def test_without_findings_the_exit_code_is_0(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.json"
    path.write_text('{"mood": {"type": "score", "criteria": ["calm", "angry"]}}')

    assert main(["question", "check", str(path), "--config", config]) == 0
    assert "no findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--twin", "urgent=team"], "no yes/no question 'team'"),
        (["--twin", "urgent"], "written as ID=ID"),
        (["--twin", "urgent=urgent"], "a question is not its own opposite"),
        (["--states", "nowhere.jsonl"], "cannot be read"),
        (["-f", "nowhere.txt"], "cannot be read"),
        (["--model", "nobody"], "no model 'nobody'; there are: scripted-1, jev-latest"),
    ],
)
def test_what_cannot_be_asked_is_exit_code_2(
    config: str, questions: str, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["question", "check", questions, "--config", config, *more]) == 2
    assert words in capsys.readouterr().err


def test_a_file_of_states_without_states_is_told_with_its_line(
    config: str, questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "states.jsonl"
    path.write_text('{"state": "a"}\n{"text": "b"}\n')

    assert main(["question", "check", questions, "--config", config, "--states", str(path)]) == 2
    assert "states.jsonl:2" in capsys.readouterr().err


def test_a_question_that_the_api_refuses_is_refused_here(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.json"
    path.write_text('{"q": {"type": "noul"}}')

    assert main(["question", "check", str(path), "--config", config]) == 2
    assert "instructions" in capsys.readouterr().err


def test_a_question_has_one_opposite_and_it_is_another_question(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.json"
    said = {"a": "Is it urgent?", "b": "Is it urgent?", "c": "Can it wait?", "d": "Is it calm?"}
    path.write_text(
        json.dumps({name: {"type": "noul", "instructions": text} for name, text in said.items()})
    )
    check = ["question", "check", str(path), "--config", config]

    assert main([*check, "--twin", "a=b"]) == 2
    assert "--twin a=b: a question is not its own opposite" in capsys.readouterr().err
    assert main([*check, "--twin", "a=c", "--twin", "a=d"]) == 2
    assert "--twin a=d: 'a' has an opposite already" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "inf", "nan", "many"])
def test_a_limit_is_a_whole_number_from_1_on(
    limit: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["question", "check", questions, f"--limit={limit}"])

    assert stopped.value.code == 2
    assert f"--limit: '{limit}' is not a whole number from 1 on" in capsys.readouterr().err


def test_a_file_without_states_is_refused(
    config: str, questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.jsonl"
    check = ["question", "check", questions, "--config", config, "--states", str(path)]
    for text, words in (("\n", "no states in it"), ("\n\x00", "s.jsonl:2: not valid JSON")):
        path.write_text(text)

        assert main(check) == 2
        assert words in capsys.readouterr().err
