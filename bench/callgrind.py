"""Instructions per request of decode, answers and encode: `python -m bench instructions`.

Counted by valgrind's callgrind as the difference between many requests and none, with a fixed hash
seed. Counts do not depend on what else the machine does, so a few per cent are a finding; they do
depend on the interpreter and the wheels, so the gate holds for the Python they were recorded with.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.instructions import STAGES
from bench.verdict import GOALS

MAX_GROWTH = 0.03
_TIMES = {"1q": 400, "64q": 20}
_COLLECTED = re.compile(r"Collected : (\d+)")


class CannotCount(Exception):
    """Valgrind, or the program under it, failed; the message holds the end of what it wrote."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The counts of GOALS.toml."""

    python: str
    """The version they were counted with, e.g. `3.11.7`."""
    counts: Mapping[str, int]
    """`STAGE BODY` → instructions per request."""


def recorded(path: Path = GOALS) -> Recorded:
    """The counts to compare with.

    Raises:
        ValueError: the table lacks its `python`, or holds something that is no count.
    """
    table = tomllib.loads(path.read_text()).get("instructions", {})
    python = table.get("python")
    counts = {name: count for name, count in table.items() if name != "python"}
    if not isinstance(python, str) or not all(type(c) is int and c > 0 for c in counts.values()):
        raise ValueError("[instructions] needs python = '3.x.y' and positive counts")
    return Recorded(python, counts)


def grown(counts: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
    """Name → relative growth, for counts that grew by more than `MAX_GROWTH`."""
    return {
        name: count / before[name] - 1.0
        for name, count in counts.items()
        if name in before and count > before[name] * (1.0 + MAX_GROWTH)
    }


def counted(body: str) -> Iterator[tuple[str, int]]:
    """`STAGE BODY` and its instructions per request, one stage after the other.

    Raises:
        CannotCount: valgrind or the program under it failed.
    """
    nothing = _collected(STAGES[0], body, 0)
    for stage in STAGES:
        times = _TIMES[body]
        yield f"{stage} {body}", round((_collected(stage, body, times) - nothing) / times)


def _collected(stage: str, body: str, times: int) -> int:
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    program = (sys.executable, "-m", "bench.instructions", stage, body, str(times))
    ended = subprocess.run(
        [*valgrind, *program],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = _COLLECTED.search(ended.stderr)
    if ended.returncode or found is None:
        raise CannotCount(f"{stage} {body} under valgrind:\n{ended.stderr[-2000:]}")
    return int(found[1])


def main(arguments: Sequence[str]) -> int:
    """0; 1 when `--check` finds a count that grew. A machine without valgrind is no failure."""
    parser = argparse.ArgumentParser(prog="python -m bench instructions")
    parser.add_argument("--check", action="store_true", help="exit 1 when a count grew by over 3%%")
    parser.add_argument("--bodies", nargs="+", choices=tuple(_TIMES), default=tuple(_TIMES))
    chosen = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("Not counted: valgrind is not installed (apt install valgrind).")
        return 0
    before = recorded()
    here = platform.python_version()
    comparable = here == before.python
    if not comparable:
        print(f"Not compared: counts are recorded for Python {before.python}, this is {here}.")
    print(f'[instructions]\npython = "{here}"')
    counts: dict[str, int] = {}
    for body in chosen.bodies:
        for name, count in counted(body):
            counts[name] = count
            print(f'"{name}" = {count}', flush=True)
    more = grown(counts, before.counts) if comparable else {}
    for name, growth in more.items():
        print(f"{name} grew by {growth:.1%}, at most {MAX_GROWTH:.0%} is allowed.", file=sys.stderr)
    return 1 if more and chosen.check else 0
