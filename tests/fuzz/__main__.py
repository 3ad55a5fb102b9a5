"""`python -m tests.fuzz TARGET`: coverage-guided fuzzing with atheris, until something breaks.

What breaks is written to tests/fuzz/found/, where the suite tries it ever after. Needs
requirements/fuzz.lock.
"""

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["gateway", "python_multipart"]):
    from .seeds import SEEDS
    from .targets import TARGETS

_FOUND = Path(__file__).parent / "found"
_CORPUS = Path("build/fuzz")


def main() -> None:
    """Fuzz one target; libFuzzer ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--max-bytes", type=int, default=20_000, help="longest input")
    chosen = parser.parse_args()
    corpus = _CORPUS / chosen.target
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[chosen.target]):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={chosen.seconds}",
        f"-max_len={chosen.max_bytes}",
        f"-artifact_prefix={_FOUND / chosen.target}-",
        "-timeout=20",
        "-rss_limit_mb=4096",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *options], TARGETS[chosen.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
