"""Every key has the line that it stands on."""

import json

from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Json
from gateway.lines import json_lines, line_of, toml_lines

NAMES = st.text(max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES
TREES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3)
)


def test_quoted_and_dotted_keys_of_toml_are_found() -> None:
    text = 'top = 1\n[models."a.b"]\nengine = "x"\n"odd key" = 2\nx.y = 3\n'

    assert toml_lines(text) == {
        ("top",): 1,
        ("models", "a.b"): 2,
        ("models", "a.b", "engine"): 3,
        ("models", "a.b", "odd key"): 4,
        ("models", "a.b", "x", "y"): 5,
    }


def test_tables_of_an_array_are_numbered_and_their_name_is_the_first() -> None:
    text = "[[a.b]]\nx = 1\n[[a.b]]\nx = 2\n[a.b.c]\ny = 3\n"

    assert toml_lines(text) == {
        ("a", "b"): 1,
        ("a", "b", "0"): 1,
        ("a", "b", "0", "x"): 2,
        ("a", "b", "1"): 3,
        ("a", "b", "1", "x"): 4,
        ("a", "b", "1", "c"): 5,
        ("a", "b", "1", "c", "y"): 6,
    }


def test_the_nearest_key_around_has_the_line() -> None:
    lines = {("a",): 1, ("a", "b"): 2}

    assert line_of(("a", "b", "c"), lines) == 2
    assert line_of(("a", "x"), lines) == 1
    assert line_of(("x",), lines) is None
    assert line_of((), lines) is None


def below(node: Json) -> list[tuple[str, Json]]:
    if isinstance(node, dict):
        return list(node.items())
    return [(str(at), one) for at, one in enumerate(node)] if isinstance(node, list) else []


@given(TREES)
def test_each_value_of_a_json_text_stands_on_the_line_of_its_key(tree: Json) -> None:
    text = json.dumps(tree, indent=1)
    lines, found = text.split("\n"), json_lines(text)

    waiting: list[tuple[tuple[str, ...], Json]] = [((name,), one) for name, one in below(tree)]
    assert len(waiting) <= len(found)
    for key, node in waiting:
        begins = json.dumps(node, indent=1).split("\n")[0]
        assert lines[found[key] - 1].removesuffix(",").endswith(begins)
        waiting += [((*key, name), one) for name, one in below(node)]
