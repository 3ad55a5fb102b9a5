"""What the head needs of the backbone's hidden states, gathered while they stream past.

Of each token the head keeps one short row, of each question and option a mean, of the last token
all of it; so hidden states of a long prompt never exist at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engines.clef.crossing import placed, sent
from engines.clef.head import DecisionHead, Evidence, Memory
from engines.clef.model import Table
from engines.clef.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows' questions and options are; all tensors on the device."""

    spans: Tensor
    """int64[rows, spans, 2]: of questions, then of options; empty at padding."""
    lengths: Tensor
    """int64[rows]"""
    questions: int
    """Most questions of a row; the options' spans follow."""
    counts: tuple[int, ...]
    """The lengths once more, for the host: to look at those on the device is to wait for it."""


class Intake:
    """The memory rows, span means and last tokens of rows whose chunks are taken in order."""

    def __init__(self, head: DecisionHead, places: Places) -> None:
        self._head = head
        self._places = places
        self._memory: list[Tensor] = []
        self._means: Tensor | None = None
        self._last: Tensor | None = None
        self._taken = 0

    def take(self, hidden: Tensor) -> None:
        """The next chunk, [rows, tokens, hidden]."""
        normed = self._head.hidden_norm(hidden)
        self._memory.append(self._head.memory(normed))
        at = torch.arange(hidden.shape[1], device=hidden.device) + self._taken
        begin, end = self._places.spans[..., :1], self._places.spans[..., 1:]
        inside = (at >= begin) & (at < end)
        shares = inside / (end - begin).clamp(min=1)
        wide = normed.float()
        means = shares @ wide
        ends = (at == self._places.lengths[:, None] - 1)[:, None].float()
        last = (ends @ wide)[:, 0]
        self._means = means if self._means is None else self._means + means
        self._last = last if self._last is None else self._last + last
        self._taken += hidden.shape[1]

    def memory(self) -> Tensor:
        """[rows, tokens, width] of everything taken."""
        return self._memory[0] if len(self._memory) == 1 else torch.cat(self._memory, 1)

    def means(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of questions [rows, q, hidden], of options [rows, n, hidden], the last [rows, hidden].

        Raises:
            ValueError: nothing was taken.
        """
        if self._means is None or self._last is None:
            raise ValueError("no hidden states were taken")
        dtype = self._memory[0].dtype
        count = self._places.questions
        means = self._means.to(dtype)
        return means[:, :count], means[:, count:], self._last.to(dtype)


def places(prompts: Sequence[Prompt], begins: Sequence[int], device: torch.device) -> Places:
    """`begins` says where in each row its schema begins."""
    most_questions = max(len(one.questions) for one in prompts)
    most_options = max(_options(one) for one in prompts)
    spans = torch.zeros(len(prompts), most_questions + most_options, 2, dtype=torch.int64)
    for row, (prompt, begin) in enumerate(zip(prompts, begins, strict=True)):
        asked = [question.question for question in prompt.questions]
        options = [span for question in prompt.questions for span in question.options]
        spans[row, : len(asked)] = torch.tensor(asked) + begin
        spans[row, most_questions : most_questions + len(options)] = torch.tensor(options) + begin
    lengths = [len(one.schema) + begin for one, begin in zip(prompts, begins, strict=True)]
    return Places(sent(spans, device), placed(lengths, device), most_questions, tuple(lengths))


def evidence(prompts: Sequence[Prompt], intake: Intake, memory: Memory, words: Table) -> Evidence:
    """Everything the head reads of these prompts, whose rows the intake has taken."""
    questions, options, last = intake.means()
    count, width = questions.shape[1], options.shape[1]
    types = torch.zeros(len(prompts), count, dtype=torch.int64)
    asker = torch.full((len(prompts), width), count)
    for row, prompt in enumerate(prompts):
        types[row, : len(prompt.questions)] = torch.tensor([q.type for q in prompt.questions])
        owners = [i for i, question in enumerate(prompt.questions) for _ in question.options]
        asker[row, : len(owners)] = torch.tensor(owners)
    device = last.device
    said = _words(prompts, width, words).to(options.dtype)
    return Evidence(
        memory, last, questions, options, said, sent(types, device), sent(asker, device)
    )


def _words(prompts: Sequence[Prompt], width: int, words: Table) -> Tensor:
    """float32[prompts, width, hidden]: the mean row of each option's tokens; 0 at padding."""
    pieces = [
        (row * width + at, prompt.schema[begin:end])
        for row, prompt in enumerate(prompts)
        for at, (begin, end) in enumerate(
            span for question in prompt.questions for span in question.options
        )
    ]
    rows = words.of(torch.tensor([token for _, piece in pieces for token in piece])).float()
    counts = placed([len(piece) for _, piece in pieces], rows.device)
    # unsafe: that the counts add up is not looked at, for which the host would have to wait
    means = torch.segment_reduce(rows, "mean", lengths=counts, axis=0, unsafe=True)
    all_means = rows.new_zeros(len(prompts) * width, rows.shape[1])
    all_means.index_copy_(0, placed([place for place, _ in pieces], rows.device), means)
    return all_means.view(len(prompts), width, -1)


def _options(prompt: Prompt) -> int:
    return sum(len(question.options) for question in prompt.questions)
