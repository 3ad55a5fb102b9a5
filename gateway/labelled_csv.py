"""Labelled questions from CSV: one row a state, one column a question's label.

The first line names the columns. `state` is the state as text; or columns `state.NAME` together
are a structured state of those names. Every other column whose name is a question id holds labels:
an option name, `true`/`false` (also `yes`/`no`, `1`/`0`), or a level index; an empty cell is no
label. Columns that begin with `_` are ignored. The questions stand in the `questions.json` beside
the file, under the file's name without `.csv`.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engines.contract import Json, Noul, Question, Score
from gateway.config_file import ConfigError
from gateway.labelled import Questions, Row, labels_of, read_text

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def rows_of_csv(path: Path) -> Iterator[Row]:
    """The rows of the file, in order.

    Raises:
        ConfigError: naming the file, the line and the column.
    """
    questions = Questions(path).named(path.stem, str(path))
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = next(reader, None)
        if header is None:
            return
        columns = _columns(header, questions, path)
        for cells in reader:
            if cells:
                yield _row(cells, columns, questions, f"{path}:{reader.line_num}")
    except csv.Error as error:
        raise ConfigError(f"{path}:{reader.line_num}: not valid CSV: {error}") from None


def _columns(
    header: Sequence[str], questions: Mapping[str, Question], path: Path
) -> tuple[str, ...]:
    """The names of the columns, checked."""
    names = tuple(name.strip() for name in header)
    states = [name for name in names if name == "state" or name.startswith("state.")]
    if not states or ("state" in states and len(states) > 1):
        raise ConfigError(f"{path}:1: one column 'state' or columns 'state.NAME' are needed")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{path}:1: there are two columns '{name}'")
        if name not in states and name not in questions and not name.startswith("_"):
            raise ConfigError(
                f"{path}:1: the column '{name}' is no question; there are: {', '.join(questions)}"
            )
    return names


def _row(
    cells: Sequence[str], columns: Sequence[str], questions: Mapping[str, Question], place: str
) -> Row:
    if len(cells) != len(columns):
        raise ConfigError(f"{place}: {len(cells)} cells, but there are {len(columns)} columns")
    named = dict(zip(columns, cells, strict=True))
    fields: dict[str, Json] = {
        name.removeprefix("state."): cell
        for name, cell in named.items()
        if name.startswith("state.")
    }
    said: dict[str, Json] = {
        name: _label(questions[name], named[name])
        for name in questions
        if named.get(name, "").strip()
    }
    state = fields if fields else named["state"]
    return Row(state, questions, labels_of(questions, said, place), place)


def _label(question: Question, cell: str) -> Json:
    """The cell as JSONL would have it; what cannot be is left for `labels_of` to refuse."""
    match question:
        case Noul():
            return _TRUTH.get(cell.strip().lower(), cell)
        case Score():
            return int(cell) if cell.strip().isdecimal() else cell
        case _:
            return cell if cell in question.options else cell.strip()
