"""What the reader shares, pads and remembers changes no answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from engines.clef.model import Model
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Limits, Prompt, Subject, prompt
from engines.clef.reader import Logits, Reader, _on
from engines.clef.rendering import worded
from engines.clef.room import unlimited
from engines.clef.settings import ClefSettings
from engines.clef.steps import Row, Steps
from engines.clef.tokens import Tokens
from engines.contract import Choice, Noul, Question, Score

from .conftest import Reads
from .golden import TINY

LIMITS = Limits(16_384, None, truncate=False)
QUESTIONS: list[Question] = [
    Noul("Is it urgent?"),
    Choice({"billing": "Charges and refunds", "sales": None, "other": ""}, "Which team?"),
    Score(["calm", "annoyed", "very angry indeed, and threatening to leave"], "How angry?"),
    Noul("Does the customer, who writes at some length about several things, ask for money?"),
]
WORDS = "the customer writes about an invoice that was charged twice in March "


def prompts(tokens: Tokens, lengths: Sequence[int], asked: int = 4) -> list[Prompt]:
    """Each question about states of so many words."""
    return [
        prompt(tokens, Subject(tokens.state(WORDS * n, 16_384), ()), {"q": worded(one)}, LIMITS)
        for n in lengths
        for one in QUESTIONS[:asked]
    ]


def apart(a: Sequence[Logits], b: Sequence[Logits]) -> float:
    pairs = zip(a, b, strict=True)
    return max(
        abs(x - y)
        for ours, theirs in pairs
        for own, other in zip(ours, theirs, strict=True)
        for x, y in zip(own, other, strict=True)
    )


def alone(reader: Reader, asked: Sequence[Prompt]) -> list[Logits]:
    return [reader.logits([one])[0] for one in asked]


@pytest.fixture(scope="module")
def mixed(tokens: Tokens) -> list[Prompt]:
    return prompts(tokens, [1, 5, 12, 30])


@pytest.fixture(scope="module")
def plain(reads: Reads, mixed: list[Prompt]) -> list[Logits]:
    """Each prompt by itself, from its first token to its last."""
    return alone(reads(prefix_from_tokens=1_000_000, cache_from_tokens=1_000_000), mixed)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix_from_tokens": 1, "cache_from_tokens": 1},
        {"prefix_from_tokens": 1, "cache_from_tokens": 1, "prefix_cache_bytes": 0},
        {"batch_tokens": 600},
        {"chunk_tokens": 64},
        {"deterministic": True},
        {"cache_from_tokens": 1_000_000, "prefix_from_tokens": 1_000_000},
    ],
    ids=str,
)
def test_companions_and_shared_states_change_nothing(
    reads: Reads, mixed: list[Prompt], plain: list[Logits], options: dict[str, object]
) -> None:
    found = reads(**options).logits(mixed)

    assert apart(found, plain) < 1e-4


def test_a_state_that_is_remembered_reads_as_it_did_the_first_time(
    reads: Reads, mixed: list[Prompt]
) -> None:
    reader = reads(prefix_from_tokens=1, cache_from_tokens=1)

    first = reader.logits(mixed)
    again = reader.logits(mixed)

    assert first == again
    assert reader._prefixes.hits == 4


def test_a_state_is_read_once_for_all_its_questions(
    reads: Reads, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Steps._all_but_the_last
    read: list[int] = []

    def counting(steps: Steps, rows: Sequence[Row], *rest: Any) -> Any:
        read.extend(len(row.ids) for row in rows)
        return own(steps, rows, *rest)

    monkeypatch.setattr(Steps, "_all_but_the_last", counting)
    asked = prompts(tokens, [60])

    reads().logits(asked)

    assert len(read) == 1 + len(asked)
    assert read[0] == len(asked[0].opening.ids)
    assert sum(read) < asked[0].tokens + 600


def test_a_cache_without_room_remembers_nothing_and_answers_the_same(
    reads: Reads, mixed: list[Prompt], plain: list[Logits]
) -> None:
    reader = reads(prefix_from_tokens=1, cache_from_tokens=1, prefix_cache_bytes=1000)

    found = reader.logits(mixed)

    assert apart(found, plain) < 1e-4
    assert reader._prefixes.bytes == 0


def test_the_least_recently_used_state_is_forgotten_first(reads: Reads, tokens: Tokens) -> None:
    asked = prompts(tokens, [5, 6, 7], asked=1)
    large = reads(prefix_from_tokens=1, cache_from_tokens=1)
    large.logits(asked)
    room = int(large._prefixes.bytes * 0.8)
    reader = reads(prefix_from_tokens=1, cache_from_tokens=1, prefix_cache_bytes=room)

    reader.logits(asked[:1])
    reader.logits(asked[1:2])
    reader.logits(asked[:1])
    reader.logits(asked[2:])

    kept = [one for one in asked if one.opening.key in reader._prefixes._kept]
    assert kept == [asked[0], asked[2]]


def test_in_deterministic_mode_company_does_not_change_a_bit(
    reads: Reads, mixed: list[Prompt]
) -> None:
    reader = reads(deterministic=True)

    assert reader.logits(mixed) == alone(reads(deterministic=True), mixed)


def test_tables_in_host_memory_give_the_same_bits(
    model: Model, reads: Reads, mixed: list[Prompt]
) -> None:
    host = replace(model.embeddings, rows=model.embeddings.rows.clone())
    settings = ClefSettings(TINY, device="cpu", precision="fp32", tables="host")
    reader = Reader(replace(model, embeddings=host), settings, Prefixes(0))

    assert reader.logits(mixed[:4]) == reads().logits(mixed[:4])


def test_the_output_layer_is_never_multiplied(model: Model) -> None:
    modules = [*model.backbone.modules(), *model.head.modules()]
    products = [one for one in modules if isinstance(one, torch.nn.Linear)]

    assert all(one.out_features != model.words.rows.shape[0] for one in products)


def test_states_are_read_in_groups_that_memory_has_room_for(
    reads: Reads, model: Model, mixed: list[Prompt], plain: list[Logits]
) -> None:
    settings = ClefSettings(TINY, device="cpu", precision="fp32", prefix_from_tokens=1)
    whole = Reader(model, settings, Prefixes(0))
    size = max(whole._bytes(one.opening) for one in mixed)
    narrow = replace(unlimited(settings), openings_bytes=size // 2)
    reader = Reader(model, settings, Prefixes(0), room=narrow)

    groups = [
        {mixed[at].opening.key: whole._bytes(mixed[at].opening) for at in group}
        for group in reader._groups(mixed)
    ]

    assert [len(sizes) for sizes in groups] == [2, 1, 1]
    assert sum(groups[0].values()) <= narrow.openings_bytes
    assert list(whole._groups(mixed)) == [list(range(len(mixed)))]
    assert apart(reader.logits(mixed), plain) < 1e-4


def test_a_batch_is_no_larger_than_memory_has_room_for(
    model: Model, mixed: list[Prompt], plain: list[Logits], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ClefSettings(TINY, device="cpu", precision="fp32")
    narrow = replace(unlimited(settings), batch_tokens=700)
    own, sizes = Steps.ask, []

    def counting(steps: Steps, rows: Sequence[Row], *rest: Any) -> None:
        sizes.append(len(rows) * max(len(row.ids) for row in rows))
        own(steps, rows, *rest)

    monkeypatch.setattr(Steps, "ask", counting)

    found = Reader(model, settings, Prefixes(0), room=narrow).logits(mixed)

    assert max(sizes) <= 700
    assert apart(found, plain) < 1e-4


def test_states_beside_each_other_are_no_more_than_memory_has_room_for(
    model: Model, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ClefSettings(TINY, device="cpu", precision="fp32", prefix_from_tokens=1)
    asked = prompts(tokens, [30, 31, 32], asked=2)
    whole = Reader(model, settings, Prefixes(0))
    size = max(whole._bytes(one.opening) for one in asked)
    narrow = replace(unlimited(settings), openings_bytes=3 * size)
    own, sizes = Steps.ask, []

    def counting(steps: Steps, rows: Sequence[Row], *rest: Any) -> None:
        sizes.append(len(rows))
        own(steps, rows, *rest)

    monkeypatch.setattr(Steps, "ask", counting)

    found = Reader(model, settings, Prefixes(0), room=narrow).logits(asked)

    assert max(sizes) in (2, 3)
    sizes.clear()
    assert apart(found, whole.logits(asked)) < 1e-4
    assert sizes == [6]


@pytest.mark.parametrize(("room_bytes", "reads_of_one"), [(1 << 30, 2), (1000, 1)])
def test_a_state_that_cannot_be_remembered_is_read_in_one_go_with_its_question(
    reads: Reads,
    tokens: Tokens,
    monkeypatch: pytest.MonkeyPatch,
    room_bytes: int,
    reads_of_one: int,
) -> None:
    own = Steps._all_but_the_last
    read: list[int] = []

    def counting(steps: Steps, rows: Sequence[Row], *rest: Any) -> Any:
        read.append(len(rows))
        return own(steps, rows, *rest)

    monkeypatch.setattr(Steps, "_all_but_the_last", counting)
    reader = reads(cache_from_tokens=1, prefix_from_tokens=1, prefix_cache_bytes=room_bytes)

    reader.logits(prompts(tokens, [60], asked=1))

    assert len(read) == reads_of_one


def test_kernels_are_launched_on_the_devices_own_context() -> None:
    other = _on(torch.device("cuda:1"))

    assert isinstance(other, torch.cuda.device)
    assert other.idx == 1
    assert not isinstance(_on(torch.device("cpu")), torch.cuda.device)
