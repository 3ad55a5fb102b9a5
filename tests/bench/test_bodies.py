"""The bodies of the bench: seeded, of the sizes they say, and valid."""

import orjson
import pytest

from bench.bodies import bodies
from bench.instructions import STAGES, stages
from bench.peers import fastapi_echo, reference_a

SENT = bodies()


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert bodies() == bodies()
    assert bodies(1) == bodies(1)
    assert bodies(1) != bodies(2)


@pytest.mark.parametrize(
    ("name", "questions", "least_bytes", "most_bytes"),
    [
        ("1q", 1, 1_000, 1_200),
        ("8q", 8, 3_000, 3_500),
        ("64q", 64, 20_000, 24_000),
        ("255options", 1, 15_000, 19_000),
    ],
)
def test_bodies_are_as_large_as_their_names_say(
    name: str, questions: int, least_bytes: int, most_bytes: int
) -> None:
    asked = orjson.loads(SENT[name])["questions"]

    assert len(asked) == questions
    assert least_bytes <= len(SENT[name]) <= most_bytes


def test_options_are_as_many_as_the_name_says() -> None:
    asked = orjson.loads(SENT["255options"])["questions"]["q0"]

    assert len(asked["criteria"]) == 255


@pytest.mark.parametrize("body", SENT)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_can_be_repeated(body: str, stage: str) -> None:
    work = stages(SENT[body])[stage]

    assert work() == work()


@pytest.mark.parametrize("body", SENT)
def test_the_reference_app_finds_nothing_wrong_and_answers_everything(body: str) -> None:
    asked = orjson.loads(SENT[body])

    assert reference_a.faults_of(asked) == []
    for question in asked["questions"].values():
        answer = reference_a.answer(question)
        assert answer["type"] == question["type"]
        if "probabilities" in answer:
            assert sum(answer["probabilities"].values()) == pytest.approx(1.0, abs=1e-3)
            assert 0.0 <= answer["confidence"] <= 1.0


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"state": 1}, ("body", "state")),
        ({"questions": []}, ("body", "questions")),
        ({"questions": {"q": {"type": "box"}}}, ("body", "questions", "q")),
        (
            {"questions": {"q": {"type": "choice", "criteria": {"a": 1}}}},
            ("body", "questions", "q", "choice", "criteria", "a"),
        ),
    ],
)
def test_the_reference_app_says_where_a_fault_is(
    change: dict[str, object], loc: tuple[str, ...]
) -> None:
    faults = reference_a.faults_of(orjson.loads(SENT["1q"]) | change)

    assert [fault["loc"] for fault in faults] == [loc]


def test_the_fastapi_peer_answers_with_the_same_fields_as_the_reference_app() -> None:
    asked = fastapi_echo.Ask.model_validate_json(SENT["8q"])

    for name, question in asked.questions.items():
        ours = reference_a.answer(orjson.loads(SENT["8q"])["questions"][name])
        theirs = fastapi_echo.answer(question).model_dump()
        assert theirs.keys() == ours.keys()
