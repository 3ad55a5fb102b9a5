"""`python -m bench BENCH`; without a name it says which there are."""

import importlib
import sys
from collections.abc import Sequence

_BENCHES = {
    "edge": "bench.edge_command",
    "ledger": "bench.ledger",
    "memo": "bench.memo",
    "soak": "bench.soak",
    "instructions": "bench.callgrind",
    "starter": "bench.starter",
    "laya": "bench.laya",
    "cascade": "bench.cascade",
    "clef": "bench.clef.command",
}
"""Name → module with `main(arguments) -> exit code`, imported only when asked for."""


def main(arguments: Sequence[str]) -> int:
    """Run one bench; its exit code, or 2 for a name that is not there."""
    name, *rest = arguments or [""]
    if name not in _BENCHES:
        print(f"usage: python -m bench {{{' | '.join(_BENCHES)}}} [options]", file=sys.stderr)
        return 0 if name in ("-h", "--help") else 2
    code: int = importlib.import_module(_BENCHES[name]).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
