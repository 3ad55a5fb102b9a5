"""A recording knows the work alone: nothing of the example that it was made with stays in it.

Here it is a list of operations with every number that is no input fixed, as a CUDA graph has it.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from engines.clef.graphs import Recorder, Recording, Work
from engines.clef.model import Model
from engines.clef.plan import GIB
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Opening, Prompt
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens

from .golden import TINY, cases, furthest


def listed(work: Work, example: Sequence[Tensor]) -> Recording:
    """The operations of the work on this example, to be repeated on others."""

    def spread(*given: Tensor) -> tuple[Tensor, ...]:
        return work(given)

    operations: Any = make_fx(spread)(*(one.clone() for one in example))
    return lambda given: tuple(operations(*given))


@pytest.fixture
def base(tokens: Tokens) -> Prompt:
    """A prompt with one question."""
    return next(case for case in cases() if case.name == "single_question_of_basic").prompt(tokens)


def longer(prompt: Prompt, more: int) -> Prompt:
    """The same question about a state that goes on for so many tokens."""
    ids = (*prompt.opening.ids, *(300 + 7 * i % 200 for i in range(more)))
    opening = Opening(ids, (), (), f"{more}".encode())
    return Prompt(opening, prompt.schema, prompt.questions, prompt.cut)


@pytest.mark.parametrize(
    ("calls", "from_tokens"),
    [([[3], [17], [1]], 10**6), ([[3, 9, 14], [16, 2, 7]], 1)],
    ids=["from the start", "rows of several lengths on states of theirs"],
)
def test_a_recording_serves_every_input_of_its_shape(
    model: Model, base: Prompt, calls: list[list[int]], from_tokens: int
) -> None:
    settings = ClefSettings(
        TINY,
        device="cpu",
        precision="fp32",
        prefix_from_tokens=from_tokens,
        cache_from_tokens=from_tokens,
    )
    recorder = Recorder(listed, GIB)
    recording = Reader(model, settings, Prefixes(GIB), recorder=recorder)
    plain = Reader(model, settings, Prefixes(GIB))

    made = []
    for lengths in calls:
        asked = [longer(base, more) for more in lengths]
        found, expected = recording.logits(asked), plain.logits(asked)
        made.append(recorder.recorded)
        assert max(furthest(a, b) for a, b in zip(found, expected, strict=True)) < 1e-4

    assert made[0] == made[-1] > 1  # the first of each shape was recorded, the others replayed


def test_a_number_of_the_example_that_stays_would_be_noticed() -> None:
    def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (given[0] * given[0].shape[0] + torch.tensor(state[0]),)

    state = [1.0]
    recording = listed(work, [torch.ones(2)])
    state[0] = 5.0

    assert not torch.equal(recording([torch.ones(2)])[0], work([torch.ones(2)])[0])
