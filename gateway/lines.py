"""Which line of a TOML or JSON text each key stands on, so that a fault can name it."""

import json
import re
from collections.abc import Mapping, Sequence

Key = tuple[str, ...]
"""Names of tables and keys, from outside in; places in arrays as `"0"`, `"1"`."""

_HEADER = re.compile(r"^\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf'(?P<key>{_STRING})\s*:|{_STRING}|[{{}}\[\],]|[^\s{{}}\[\],:"]+')


def toml_lines(text: str) -> dict[Key, int]:
    """Key → line, from 1, for each `key =`, `[table]` and `[[table]]` on a line of its own.

    The tables of an array have their number in the key; without it, the first of them is meant.
    """
    lines: dict[Key, int] = {}
    arrays: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = _table(_parts(header[2]), arrays, another=header[1] == "[[")
            lines.setdefault(table, number)
            if header[1] == "[[":
                lines.setdefault(table[:-1], number)
        elif assignment := _ASSIGNMENT.match(line):
            lines.setdefault((*table, *_parts(assignment[1])), number)
    return lines


def json_lines(text: str) -> dict[Key, int]:
    """Key → line, from 1, of each name of an object and each item of an array. It is valid JSON."""
    lines: dict[Key, int] = {}
    inside: list[str | int] = []
    number, seen = 1, 0
    for token in _TOKEN.finditer(text):
        number, seen = number + text.count("\n", seen, token.start()), token.start()
        said = token[0]
        if token["key"]:
            inside[-1] = json.loads(token["key"])
        if said == "," and isinstance(inside[-1], int):
            inside[-1] += 1
        elif said in "}]":
            inside.pop()
        elif inside and said != "," and (token["key"] or isinstance(inside[-1], int)):
            lines.setdefault(tuple(map(str, inside)), number)
        if said in "{[":
            inside.append(0 if said == "[" else "")
    return lines


def line_of(key: Sequence[str], lines: Mapping[Key, int]) -> int | None:
    """The line of the key, or of the nearest one around it that has a line."""
    near = (lines.get(tuple(key[:length])) for length in range(len(key), 0, -1))
    return next((line for line in near if line is not None), None)


def _table(parts: Key, arrays: dict[Key, int], *, another: bool) -> Key:
    """The header's key with the number of each array that it is in; `another` begins a new one."""
    table: Key = ()
    for place, part in enumerate(parts, start=1):
        table = (*table, part)
        if another and place == len(parts):
            arrays[table] = arrays.get(table, -1) + 1
        if table in arrays:
            table = (*table, str(arrays[table]))
    return table


def _parts(dotted: str) -> Key:
    parts = re.findall(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""", dotted)
    return tuple(part.strip("\"'") for part in parts)
