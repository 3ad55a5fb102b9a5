"""What holds for the starter engine beyond the laws of every engine."""

import random
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.contract import (
    Broken,
    Choice,
    Inquiry,
    Noul,
    Question,
    Reading,
    Score,
    Text,
)
from engines.minilm.embed import Embedder, Vector
from engines.starter.engine import StarterEngine

TOPICS: Mapping[str, Text | None] = {
    "refund": "the customer wants money back",
    "password": "the customer cannot log in",
    "weather": None,
    "delivery": {"about": "a parcel", "states": ["late", "lost"]},
}


def read(engine: StarterEngine, state: Text, question: Question) -> Reading:
    (piece,) = engine.prepare(Inquiry(state, {"q": question}))
    return engine.read([piece])[0]["q"]


def best(reading: Reading, options: Mapping[str, Any]) -> str:
    return max(zip(reading.log_weights, options, strict=True))[1]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of every row that the model runs on from here on."""
    seen: list[int] = []
    vector = Embedder.vector

    def counted(self: Embedder, ids: NDArray[np.int64]) -> Vector:
        seen.append(len(ids))
        return vector(self, ids)

    monkeypatch.setattr(Embedder, "vector", counted)
    return seen


@pytest.mark.parametrize(
    ("state", "topic"),
    [
        ("I want my money back", "refund"),
        ("It will rain tomorrow", "weather"),
        ({"subject": "login", "body": "I forgot the secret word"}, "password"),
        (["where is my package?", {"ordered": "last month"}], "delivery"),
    ],
)
def test_a_state_is_routed_by_its_topic(engine: StarterEngine, state: Text, topic: str) -> None:
    reading = read(engine, state, Choice(TOPICS, "What is it about?"))

    assert best(reading, TOPICS) == topic
    assert reading.doubt is None


def test_the_order_of_options_changes_no_bit(engine: StarterEngine) -> None:
    state = "My card was charged twice"
    expected = dict(zip(TOPICS, read(engine, state, Choice(TOPICS)).log_weights, strict=True))

    for order in permutations(TOPICS):
        options = {name: TOPICS[name] for name in order}
        found = read(engine, state, Choice(options))
        assert dict(zip(order, found.log_weights, strict=True)) == expected


def test_an_engine_that_met_the_options_in_another_order_gives_the_same_bits(
    engine: StarterEngine,
) -> None:
    names = [f"topic number {n}" for n in range(60)]
    fresh = StarterEngine()

    one = read(engine, "number seven", Choice(dict.fromkeys(names))).log_weights
    other = read(fresh, "number seven", Choice(dict.fromkeys(reversed(names)))).log_weights

    assert list(one) == list(reversed(other))
    fresh.close()


def test_leaving_options_out_changes_no_bit_of_the_others(engine: StarterEngine) -> None:
    whole = read(engine, "Where is it?", Choice(TOPICS)).log_weights
    part = read(engine, "Where is it?", Choice({"weather": None})).log_weights

    assert part[0] == whole[list(TOPICS).index("weather")]


def test_the_batch_changes_no_bit(engine: StarterEngine) -> None:
    states = ["short", "a somewhat longer state about money", "x " * 200, ""]
    questions: dict[str, Question] = {
        "c": Choice(TOPICS, "What is it about?"),
        "n": Noul("Is it urgent?"),
        "s": Score(["calm", "cross", "furious"], "How angry?"),
    }
    alone = [{name: read(engine, state, q) for name, q in questions.items()} for state in states]
    pieces = [engine.prepare(Inquiry(state, questions)) for state in states]
    mixed = [(place, piece) for place, some in enumerate(pieces) for piece in some]
    random.Random(7).shuffle(mixed)

    batch = engine.read([piece for _, piece in mixed])

    for (place, _), readings in zip(mixed, batch, strict=True):
        for name, reading in readings.items():
            assert reading == alone[place][name]


def test_another_engine_and_a_warm_cache_change_no_bit_and_no_token(
    engine: StarterEngine,
) -> None:
    fresh = StarterEngine()
    cold = read(fresh, "Where is my parcel?", Choice(TOPICS, "Which?"))
    warm = read(fresh, "Where is my parcel?", Choice(TOPICS, "Which?"))
    fresh.close()

    assert cold == warm == read(engine, "Where is my parcel?", Choice(TOPICS, "Which?"))
    assert fresh.facts == engine.facts


def test_threads_may_share_the_engine(engine: StarterEngine) -> None:
    fresh = StarterEngine(option_cache=3)
    states = [f"state number {n} about a refund" for n in range(24)]
    expected = [read(engine, state, Choice(TOPICS, "Which?")) for state in states]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda s: read(fresh, s, Choice(TOPICS, "Which?")), states))

    assert found == expected
    fresh.close()


def test_options_are_embedded_once(runs: list[int]) -> None:
    engine = StarterEngine()
    read(engine, "one state", Choice(TOPICS, "Which?"))
    first = len(runs)

    read(engine, "another state", Choice(TOPICS, "Which?"))

    assert first == 1 + 1 + len(TOPICS)
    assert len(runs) == first + 1


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_no_more_options_are_remembered_than_allowed(runs: list[int], allowed: int) -> None:
    engine = StarterEngine(option_cache=allowed)
    for _ in range(2):
        read(engine, "a state", Choice(TOPICS))

    assert len(runs) == 2 * (1 + len(TOPICS))


def test_one_state_is_embedded_once_for_all_questions(
    engine: StarterEngine, runs: list[int]
) -> None:
    questions = {str(n): Choice(TOPICS, "Which?") for n in range(5)}
    read(engine, "warm up", questions["0"])
    runs.clear()

    engine.read(engine.prepare(Inquiry("a state for five questions", questions)))

    assert len(runs) == 1


def test_tokens_count_the_state_the_instructions_and_every_option(engine: StarterEngine) -> None:
    one = read(engine, "word", Choice({"red": None}))
    two = read(engine, "word word", Choice({"red": None, "blue": None}, "color"))

    assert one.tokens == 3 + 3
    assert two.tokens == 4 + 3 + 3 + 3


def test_255_options_are_weighed(engine: StarterEngine) -> None:
    options = {f"topic number {n}": None for n in range(254)} | {"refund of money": None}

    reading = read(engine, "Give me my money back", Choice(options))

    assert len(reading.log_weights) == 255
    assert best(reading, options) == "refund of money"


@pytest.mark.parametrize(
    "state", ["", "[SEP]", "你好,我想退款", "مرحبا", "😀😀😀", "\x00\x1f", "ﬀ\u200d"]
)
def test_every_script_and_the_empty_state_are_read(engine: StarterEngine, state: str) -> None:
    reading = read(engine, state, Choice({"Ünïcödé": "ключ", "": None, "二": ""}))

    assert np.isfinite(reading.log_weights).all()


def test_instructions_change_a_choice_and_are_read_to_their_end(engine: StarterEngine) -> None:
    long = "Consider every word of the message before deciding. " * 15
    plain, food, money = (
        read(engine, "I had a bad day", Choice(TOPICS, said)).log_weights
        for said in (None, long + "food", long + "money")
    )

    assert plain != food != money


def test_yes_and_no_that_say_what_they_mean_are_compared(engine: StarterEngine) -> None:
    asked = Noul("Which is it?", "it is about rain and sun", "it is about money")

    weather = read(engine, "It will rain tomorrow", asked).log_weights
    money = read(engine, "I want my money back", asked).log_weights

    assert weather[0] > weather[1]
    assert money[0] < money[1]


@pytest.mark.parametrize(
    "question", [Noul(), Noul("Urgent?"), Noul("Urgent?", "now", None), Noul(None, None, "later")]
)
def test_a_yes_no_question_depends_on_the_state_and_is_doubted(
    engine: StarterEngine, question: Noul
) -> None:
    one, other = (read(engine, state, question) for state in ("come at once", "in a year"))

    assert one.doubt == other.doubt == "not_competent"
    assert len(one.log_weights) == 2
    assert one.log_weights != other.log_weights


def test_a_score_is_doubted(engine: StarterEngine) -> None:
    assert read(engine, "a state", Score(["bad", "good"])).doubt == "not_competent"
    assert engine.facts.not_competent == {"noul", "score"}


def test_a_closed_engine_is_broken() -> None:
    engine = StarterEngine()
    pieces = engine.prepare(Inquiry("a state", {"q": Choice(TOPICS)}))
    engine.close()

    with pytest.raises(Broken, match="closed"):
        engine.read(pieces)


def test_importing_the_package_loads_no_model_runtime() -> None:
    asked = "import sys, engines.starter; sys.exit('onnxruntime' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
