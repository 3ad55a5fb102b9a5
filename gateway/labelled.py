"""Labelled questions from JSONL and CSV files. Their texts are the operator's: never log them.

JSONL: one object a line with `state`, `questions` (a System One questions object, or `"@name"`,
the entry of that name in the `questions.json` beside the file) and `labels`, question id → option
name, true/false or level index. CSV: see `labelled_csv`.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engines.contract import Choice, Inquiry, Json, Noul, Question, Score, Text
from gateway.config_file import ConfigError
from gateway.config_limits import LimitsSection
from gateway.dialects import systemone
from gateway.dialects.systemone import AskLimits
from gateway.dialects.systemone_text import TextLimits
from gateway.documents import json_tree
from gateway.errors import Refusal
from gateway.text_file import text_of
from policies.cells import fingerprint

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Row:
    """A state, questions about it, and what the right answers are."""

    state: Text = field(repr=False)
    questions: Mapping[str, Question] = field(repr=False)
    """Question id → question, in the file's order; rows of one file share equal questions."""
    labels: Mapping[str, int]
    """Question id → index of the right label: of a noul 0 = true, 1 = false. Questions may be
    without."""
    place: str
    """`FILE:LINE`."""

    @property
    def inquiry(self) -> Inquiry:
        """The row as an engine reads it."""
        return Inquiry(self.state, self.questions)


def load_rows(paths: Sequence[Path], *, labels_needed: bool = True) -> list[Row]:
    """Every row of the files, in order.

    `labels_needed`: whether a row without any label is refused.

    Raises:
        ConfigError: a file cannot be read, or a line is not what it should be; names file, line
            and key.
    """
    rows: list[Row] = []
    for path in paths:
        found = list(_rows_of(path))
        if not found:
            raise ConfigError(f"{path}: there are no rows in it")
        for row in found:
            if labels_needed and not row.labels:
                raise ConfigError(f"{row.place}: labels: there is none")
        rows += found
    return rows


def state_key(state: Text) -> str:
    """SHA-256 of a state; equal for equal JSON, in whatever order its keys stand."""
    return _sha256(state)


def answer_key(row: Row, question: str) -> str:
    """SHA-256 of the state and the question: two rows with one key say the same thing twice."""
    return _sha256([state_key(row.state), fingerprint(row.questions[question])])


class Questions:
    """Makes questions of what a file says, each distinct object once."""

    def __init__(self, path: Path) -> None:
        """`path` is the labelled file; `questions.json` is looked for beside it."""
        self._beside = path.parent / "questions.json"
        self._named: dict[str, Json] | None = None
        self._known: dict[str, Mapping[str, Question]] = {}

    def named(self, name: str, place: str) -> Mapping[str, Question]:
        """The questions of an entry of `questions.json`.

        Raises:
            ConfigError: there is no such file or entry, or it is no questions object.
        """
        if self._named is None:
            try:
                self._named = _json_object(self._beside)
            except ConfigError as error:
                raise ConfigError(f"{place}: questions: {error}") from None
        if name not in self._named:
            near = difflib.get_close_matches(name, self._named, n=1)
            hint = f"; did you mean '@{near[0]}'?" if near else ""
            raise ConfigError(f"{place}: questions: {self._beside} has no '{name}'{hint}")
        return self.made(self._named[name], f"{self._beside}: {name}", key=f"@{name}")

    def made(self, asked: Json, place: str, key: str | None = None) -> Mapping[str, Question]:
        """The questions of a System One questions object.

        Raises:
            ConfigError: naming the place and what is wrong there.
        """
        known_as = json.dumps(asked) if key is None else key
        if known_as not in self._known:
            if why := _unsendable(asked):
                raise ConfigError(f"{place}: questions: {why}")
            self._known[known_as] = _decoded("", asked, place).questions
        return self._known[known_as]


def label_of(question: Question, said: Json) -> int:
    """The index of the label that a file names.

    Raises:
        ValueError: the question has no such label; the message says which it has.
    """
    match question:
        case Noul():
            if not isinstance(said, bool):
                raise ValueError("the label of a noul question is true or false")
            return 0 if said else 1
        case Choice():
            if not isinstance(said, str) or said not in question.options:
                near = difflib.get_close_matches(str(said), question.options, n=1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise ValueError(f"the question has no such option{hint}")
            return list(question.options).index(said)
        case Score():
            top = len(question.levels) - 1
            if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said <= top:
                raise ValueError(f"the label of this score is a level index from 0 to {top}")
            return said


def labels_of(questions: Mapping[str, Question], said: Json, place: str) -> dict[str, int]:
    """Question id → label index.

    Raises:
        ConfigError: a label for a question that is not asked, or that the question has not.
    """
    if not isinstance(said, dict):
        raise ConfigError(f"{place}: labels: an object of question id and label is needed")
    found: dict[str, int] = {}
    for name, label in said.items():
        if name not in questions:
            raise ConfigError(f"{place}: labels.{name}: there is no such question")
        try:
            found[name] = label_of(questions[name], label)
        except ValueError as error:
            raise ConfigError(f"{place}: labels.{name}: {error}") from None
    return found


def _rows_of(path: Path) -> Iterator[Row]:
    if path.suffix.lower() == ".csv":
        from gateway.labelled_csv import rows_of_csv

        return rows_of_csv(path)
    return _rows_of_jsonl(path)


def _rows_of_jsonl(path: Path) -> Iterator[Row]:
    questions = Questions(path)
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            said = json_tree(line)
        except ValueError as error:
            raise ConfigError(f"{place}: not valid JSON: {error}") from None
        if not isinstance(said, dict):
            raise ConfigError(f"{place}: an object with state, questions and labels is needed")
        yield _row(said, questions, place)


def _row(said: Mapping[str, Json], questions: Questions, place: str) -> Row:
    for key in ("state", "questions"):
        if key not in said:
            raise ConfigError(f"{place}: {key}: this is missing")
    state, asked = said["state"], said["questions"]
    if not isinstance(state, str | dict | list):
        raise ConfigError(f"{place}: state: a string, an object or an array is needed")
    if why := _unsendable(state):
        raise ConfigError(f"{place}: state: {why}")
    if isinstance(asked, str):
        if not asked.startswith("@"):
            raise ConfigError(f"{place}: questions: a name is written as '@name'")
        made = questions.named(asked[1:], place)
    else:
        made = questions.made(asked, place)
    return Row(state, made, labels_of(made, said.get("labels", {}), place), place)


def _unsendable(value: Json) -> str | None:
    """Why no request could hold the value; `None` = one could."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return "it has NaN or an endless number, which JSON does not know"
    if _LONE_SURROGATE.search(text):
        return "it has half of a surrogate pair, which is no text"
    return None


def _decoded(state: Text, asked: Json, place: str) -> Inquiry:
    """As the wire would decode it, so that a file holds what may be asked and nothing else."""
    limits = LimitsSection()
    allowed = AskLimits(
        limits.max_values,
        limits.max_questions,
        limits.max_id_chars,
        limits.max_option_chars,
        limits.max_assets,
        TextLimits(limits.max_text_chars, limits.max_depth),
    )
    body = json.dumps({"state": state, "questions": asked}).encode()
    try:
        return systemone.decode(body, None, allowed)[1]
    except Refusal as error:
        problem = error.problem
        first = problem.faults[0] if problem.faults else None
        if first is None:
            raise ConfigError(f"{place}: {problem.message}") from None
        where = ".".join(str(part) for part in first.loc[1:])
        raise ConfigError(f"{place}: {where}: {first.msg}") from None


def read_text(path: Path) -> str:
    """The file's content; `/dev/stdin` and `/dev/fd/N` may be pipes.

    Raises:
        ConfigError: it cannot be read or is not UTF-8.
    """
    try:
        return text_of(path, streams=True)
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _json_object(path: Path) -> dict[str, Json]:
    try:
        found = json_tree(read_text(path))
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: an object of name and questions is needed")
    return found


def _sha256(value: Json) -> str:
    exact = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(exact.encode()).hexdigest()
