"""Between a prompt and its scores nobody waits for the device, and recordings need no host."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.clef.clocks import operations
from engines.clef.backbone import stretch_of
from engines.clef.graphs import Recorder, Recording, Work
from engines.clef.layers import Turn
from engines.clef.plan import FLASH, GIB
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Asked, Opening, Prompt
from engines.clef.reader import Reader
from engines.clef.replay import Replay
from engines.clef.settings import ClefSettings

from .golden import TINY
from .unreal import FromTheHost, NoWaits, unreal_model

LEAST = 89
"""Operations of one layer of either kind, with MLPs and the final norm, without the delta rule."""
TEXT = replace(FLASH, linear=(True, False))


def prompt(state: int, question: int, asked: int = 1) -> Prompt:
    """One or several questions of two and three options about a state of so many tokens."""
    each = [
        Asked(f"q{i}", 1, (i, i + 3), tuple((at, at + 2) for at in range(4, 8 + 2 * i, 2)), (0, 1))
        for i in range(asked)
    ]
    opening = Opening(tuple(range(state)), (), (), f"{state}".encode())
    return Prompt(opening, tuple(range(question)), tuple(each), None)


PROMPTS = {
    "alone": [prompt(300, 84)],
    "two questions about one state": [prompt(300, 84), prompt(300, 70)],
    "several states": [prompt(300, 84), prompt(300, 70), prompt(200, 84), prompt(200, 50)],
    "of several lengths": [prompt(100, 84), prompt(50, 84)],
    "in chunks": [prompt(1500, 84)],
    "questions in one prompt": [prompt(60, 84, asked=3)],
}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The scores that were computed; their values, which there are none of, are zeros."""
    found: list[Tensor] = []
    own = Replay.scores

    def scores(replay: Replay, evidence: Any) -> Tensor:
        found.append(own(replay, evidence))
        return torch.zeros(found[-1].shape)

    own_tensor = torch.tensor

    def tensor(*args: Any, **kwargs: Any) -> Tensor:
        assert "device" not in kwargs, "a tensor that is made on a device waits for it"
        return own_tensor(*args, **kwargs)

    monkeypatch.setattr(Replay, "scores", scores)
    monkeypatch.setattr(torch, "tensor", tensor)
    return found


def checked(work: Work, example: Sequence[Tensor]) -> Recording:
    """Work of which nothing comes from the host, as a device that records it demands."""
    fixed = [one.clone() for one in example]
    with FromTheHost():  # type: ignore[no-untyped-call]
        work(fixed)
    return lambda given: work(list(given))


@pytest.mark.parametrize("recorded", [False, True], ids=["as it comes", "recorded"])
@pytest.mark.parametrize("asked", PROMPTS.values(), ids=PROMPTS.keys())
def test_nobody_waits_between_a_prompt_and_its_scores(
    scored: list[Tensor], asked: list[Prompt], recorded: bool
) -> None:
    settings = ClefSettings(TINY, device="cpu", chunk_tokens=512)
    recorder = Recorder(checked, GIB) if recorded else None
    reader = Reader(unreal_model(TEXT), settings, Prefixes(GIB), recorder=recorder)

    with NoWaits():  # type: ignore[no-untyped-call]
        for _ in range(2):
            found = reader.logits(asked)

    assert [len(own) for own in found] == [len(one.questions) for one in asked]
    assert all(one.is_meta for one in scored)
    assert recorder is None or recorder.recorded > 0


WAITS: list[Callable[[Tensor], object]] = [
    lambda x: int(x.min()),
    lambda x: x[x > 0],
    lambda x: x.__setitem__(x > 0, 1.0),
    lambda x: torch.ones(2).to(x.device),
    lambda x: x.copy_(torch.ones(2)),
]


@pytest.mark.parametrize("work", WAITS)
def test_a_wait_would_be_noticed(work: Callable[[Tensor], object]) -> None:
    there = torch.ones(2, device="meta")

    with pytest.raises(AssertionError, match="the device"), NoWaits():  # type: ignore[no-untyped-call]
        work(there)


def test_a_tensor_of_the_host_would_be_noticed() -> None:
    def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (given[0] + torch.tensor([1.0, 2.0]).to("meta"),)

    with pytest.raises(AssertionError, match="of the host"):
        checked(work, [torch.ones(2, device="meta")])


def test_a_forward_has_no_more_operations_than_it_was_brought_down_to() -> None:
    """Each is at least one kernel, and a kernel is what a short prompt waits for."""
    model = unreal_model(replace(FLASH, linear=(True, False)))
    embedded = torch.empty(1, 64, FLASH.hidden, dtype=torch.bfloat16, device="meta")
    place = torch.empty(1, 64, FLASH.rotary.dims, dtype=torch.bfloat16, device="meta")
    stretch = stretch_of(Turn(place, place), [60], None, always=True)
    rule = replace(model.kernels, rule=lambda signals, memory: (signals.value, memory))

    with torch.inference_mode():
        model.backbone(embedded, stretch, None, rule, ends=True)  # makes what is made once
        count = operations(lambda: model.backbone(embedded, stretch, None, rule, ends=True))

    assert count <= LEAST


@pytest.mark.parametrize(
    ("state", "question", "recorded"),
    [
        (200, 84, {"alone", "head"}),
        (1900, 84, {"after", "head"}),  # its state is read before, and too long to be recorded
        (2048 + 700, 200, {"after"}),
        (2048 + 1900, 140, set()),  # the last chunk is long enough to hide launching
    ],
)
def test_only_what_is_too_short_to_hide_launching_is_recorded(
    scored: list[Tensor], state: int, question: int, recorded: set[str]
) -> None:
    kinds: set[str] = set()

    class Named(Recorder):
        def run(self, name: str, work: Work, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            kinds.add(name)
            return super().run(name, work, inputs)

    settings = ClefSettings(TINY, device="cpu", prefix_cache_bytes=0 if state > 2000 else GIB)
    prefixes = Prefixes(settings.prefix_cache_bytes)
    recorder = Named(checked, GIB)

    Reader(unreal_model(TEXT), settings, prefixes, recorder=recorder).logits(
        [prompt(state, question)]
    )

    assert kinds - {"from the start"} == recorded
    assert scored
