"""JSON content as the plain line of text an embedding model reads. Knows no tokenizer.

A string stands as it is. A mapping becomes `key: value; key: value`, a sequence `one, two`;
inside another mapping or sequence both stand in brackets: `from: Ann; tags: (new, vip)`. `true`,
`false`, `null` and numbers read as JSON writes them. Order is the sender's.
"""

import json
from collections.abc import Iterator
from typing import TypeGuard

from engines.contract import Json, Text


def line(content: Text, most_chars: int) -> str:
    """`content` as text: all of it, or more than `most_chars` characters of its beginning.

    So a reader who takes no more than `most_chars` characters can tell, and the cost is bounded
    whatever the size and depth of structured content.
    """
    if isinstance(content, str):
        return content
    parts: list[str] = []
    chars = 0
    open_nodes = [_inside(content, "", "")]
    while open_nodes and chars <= most_chars:
        for node in open_nodes[-1]:
            if _is_nested(node):
                open_nodes.append(_inside(node, "(", ")"))
                break
            parts.append(node if isinstance(node, str) else json.dumps(node))
            chars += len(parts[-1])
            if chars > most_chars:
                break
        else:
            open_nodes.pop()
    return "".join(parts)


def spoken(name: str) -> str:
    """An option's name as words: `AddToPlaylist`, `add_to-playlist` → blanks between the words."""
    words: list[str] = []
    before = ""
    for char in name:
        if char.isupper() and (before.islower() or before.isdigit()):
            words.append(" ")
        words.append(" " if char in "_-" else char)
        before = char
    return "".join(words)


def option(name: str, description: Text | None, most_chars: int) -> str:
    """`name: description` with the name as words, once only where the two say the same."""
    said = spoken(name[: most_chars + 1])
    if description is None:
        return said
    described = line(description, most_chars)[: most_chars + 1]
    if not described or described.casefold() == said.casefold():
        return said
    return f"{said}: {described}"


def _is_nested(node: Json) -> "TypeGuard[list[Json] | dict[str, Json]]":
    return isinstance(node, list | dict)


def _inside(content: list[Json] | dict[str, Json], opening: str, closing: str) -> Iterator[Json]:
    """The content's children with the marks between them, one after the other."""
    yield opening
    if isinstance(content, dict):
        for place, (key, value) in enumerate(content.items()):
            yield f"; {key}: " if place else f"{key}: "
            yield value
    else:
        for place, value in enumerate(content):
            if place:
                yield ", "
            yield value
    yield closing
