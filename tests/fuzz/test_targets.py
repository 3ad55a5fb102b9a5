"""What was found once stays found, and a light random walk finds nothing new."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .seeds import SEEDS
from .targets import TARGETS

FOUND = sorted(path for path in (Path(__file__).parent / "found").iterdir() if path.is_file())
"""Inputs that broke something, named TARGET-what-it-was."""

TOKENS = st.sampled_from(
    b'{ } [ ] , : " = # \\ \\ud800 \\u0000 -0 1e999 NaN true null . \xff \x00 \r\n '
    b"\xef\xbb\xbf \xed\xa0\x80 -- ; '".split(b" ")
)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> bytes:
    """A good input with stretches of it overwritten, repeated or cut out."""
    content = draw(st.sampled_from(SEEDS[name]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = at + draw(st.integers(0, 30))
        piece = draw(st.binary(max_size=6) | TOKENS | st.just(content[at:end] * 3))
        content = content[:at] + piece + content[end:]
    return content


@pytest.mark.parametrize("name", TARGETS)
def test_a_good_input_breaks_nothing(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_once_breaks_nothing_any_more(path: Path) -> None:
    TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(data=st.data())
def test_almost_good_inputs_are_read_or_refused(name: str, data: st.DataObject) -> None:
    TARGETS[name](data.draw(mutated(name) | st.binary(max_size=200)))


@pytest.mark.parametrize(
    ("name", "deep"),
    [
        ("config", b"a = " + b"[" * 195 + b"]" * 195),
        ("config", b"a = " + b"{a=" * 5000),
        ("calibration", b"[" * 100_000),
        ("calibration", b'{"version": ' + b"9" * 5000),
        ("jsonl", b'{"state": ' + b"[" * 100_000),
        ("jsonl", b'{"questions": "@rows", "state": ' + b"[" * 198 + b"]" * 198 + b"}"),
        ("jsonl", b'{"state": ' + b"9" * 5000),
        ("csv", b'"' + b"x" * 200_000),
        ("ask", b"[" * 100_000),
        ("outcomes", b"[" * 100_000),
    ],
)
def test_nesting_and_numbers_without_end_are_refused(name: str, deep: bytes) -> None:
    TARGETS[name](deep)
