"""What a bench of Laya measures: CPU per inquiry, GEMM rate, drift, the effect of int8, memory."""

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.laya_contenders import Contender, gemm, inquiry, open_engine
from engines.contract import Inquiry
from engines.laya.checkpoint import Encoder
from engines.laya.engine import LayaEngine

CONTROL = "tiergate fp32 again"
GEMM = "gemm"
Tell = Callable[[str], None]


@dataclass(slots=True)
class Costs:
    """CPU milliseconds per inquiry: length → contender → one per round."""

    ms: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    gflops: dict[int, list[float]] = field(default_factory=dict)
    """GEMM rate: length → one per round."""
    tokens: dict[int, int] = field(default_factory=dict)

    def add(self, length: int, name: str, ms: float) -> None:
        """One more sample."""
        self.ms.setdefault(length, {}).setdefault(name, []).append(ms)

    def ratio(self, length: int, name: str, peer: str) -> tuple[float, float, float]:
        """Median and quartiles over rounds of how many times as long the peer takes."""
        of, to = self.ms[length][name], self.ms[length][peer]
        return _quartiles([b / a for a, b in zip(of, to, strict=True)])

    def of_gemm(self, length: int, name: str, flops: float) -> tuple[float, float, float]:
        """Median and quartiles of the share of the GEMM rate of the same round."""
        pairs = zip(self.ms[length][name], self.gflops[length], strict=True)
        return _quartiles([flops / (ms * 1e6) / rate for ms, rate in pairs])


def measured(
    asks: Mapping[int, Inquiry],
    everybody: Mapping[str, Contender],
    hidden: int,
    rounds: int,
    tell: Tell,
) -> Costs:
    """Every contender once per round and length, in a new order each round, GEMM around them."""
    costs = Costs()
    names = [*everybody, CONTROL]
    for length, one in asks.items():
        read = {contender.ask(one) for contender in everybody.values()}
        if len(read) > 1:
            raise ValueError(f"not everybody read the same tokens: {sorted(read)}")
        costs.tokens[length] = read.pop()
    for i in range(rounds):
        for length, one in asks.items():
            rates = [_gemm_rate(hidden, length)]
            for name in names[i % len(names) :] + names[: i % len(names)]:
                ask = everybody["tiergate fp32" if name == CONTROL else name].ask
                time.sleep(0.1)  # what spins after its work must not be billed to the next
                costs.add(length, name, _cpu_ms(ask, one))
            rates.append(_gemm_rate(hidden, length))
            costs.gflops.setdefault(length, []).append(max(rates))
        tell(f"round {i + 1} of {rounds}")
    return costs


def many_questions(engine: LayaEngine, length: int, questions: int, rounds: int) -> float:
    """CPU per question of an inquiry with many, over that of the same questions asked alone."""
    together = inquiry(engine, length, questions)
    alone = [Inquiry(together.state, {name: one}) for name, one in together.questions.items()]
    ratios = []

    def answered(one: Inquiry) -> None:
        for piece in engine.prepare(one):
            engine.read([piece])

    for _ in range(rounds):
        singly = sum(_cpu_ms(answered, one) for one in alone)
        ratios.append(_cpu_ms(answered, together) / singly)
    return statistics.median(ratios)


def drift(engine: LayaEngine, length: int) -> float:
    """Largest difference of a log-weight between asked alone and among seven others."""
    together = inquiry(engine, length, 8)
    crowd = _weights(engine, together)
    worst = 0.0
    for name, question in together.questions.items():
        alone = _weights(engine, Inquiry(together.state, {name: question}))
        worst = max(worst, float(np.abs(alone[name] - crowd[name]).max()))
    return worst


def int8_effect(path: Path, lengths: Sequence[int], samples: int) -> tuple[float, int, int]:
    """Largest change of a probability by int8, changed answers, and answers compared."""
    plain, coarse = open_engine(path, "fp32"), open_engine(path, "int8")
    worst, flips, count = 0.0, 0, 0
    for seed in range(samples):
        one = inquiry(plain, lengths[seed % len(lengths)], 3, seed)
        a, b = _weights(plain, one), _weights(coarse, one)
        for name in a:
            p, q = _softmax(a[name]), _softmax(b[name])
            worst = max(worst, float(np.abs(p - q).max()))
            flips += int(p.argmax() != q.argmax())
            count += 1
    return worst, flips, count


def flops(encoder: Encoder, head_layers: int, tokens: int, options: int) -> float:
    """Operations that one row needs: products of weights and of attention."""
    d, wide, n = encoder.hidden, encoder.intermediate, tokens
    layer = 2.0 * n * (4 * d * d + 3 * d * wide)
    seen = sum(min(n, 2 * encoder.half_window + 1) if sliding else n for sliding in encoder.sliding)
    full_head = 2.0 * n * 12 * d * d + 4.0 * n * n * d
    last_head = 2.0 * n * 2 * d * d + 2.0 * options * 10 * d * d + 4.0 * options * n * d
    encoded = encoder.layers * layer + 4.0 * n * seen * d
    return encoded + (head_layers - 1) * full_head + last_head


MEMORY = {
    "tiergate fp32": "from bench.laya_contenders import open_engine as o, inquiry as i\n"
    "from pathlib import Path; e = o(Path(sys.argv[1]), 'fp32')\n"
    "one = i(e, 128); e.read(e.prepare(one))",
    "tiergate int8": "from bench.laya_contenders import open_engine as o, inquiry as i\n"
    "from pathlib import Path; e = o(Path(sys.argv[1]), 'int8')\n"
    "one = i(e, 128); e.read(e.prepare(one))",
    "laya (torch eager)": "import laya, torch; torch.set_num_threads(1)\n"
    "a = laya.load(sys.argv[1], device='cpu')\n"
    "a.predict('word ' * 100, {'q': {'type': 'noul', 'instructions': 'Is it?'}})",
    "import fp32": "from pathlib import Path\n"
    "from engines.laya.checkpoint import load; from engines.laya.artifact import imported\n"
    "c = load(Path(sys.argv[1])); base = peak(); imported(c, 'fp32'); print('BASE', base)",
}
"""What is run in a process of its own to see its memory."""

_PRELUDE = (
    "import re, sys, warnings; warnings.simplefilter('ignore')\n"
    "def peak(): return int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
)
_EPILOGUE = "\nprint(open('/proc/self/status').read()); print('PEAK', peak())"


def memory_kib(path: Path, what: str) -> dict[str, int]:
    """KiB that a process has at the end: `anonymous`, `files` (mapped), `peak`, and for an
    import the peak `before` it."""
    run = subprocess.run(
        [sys.executable, "-c", _PRELUDE + MEMORY[what] + _EPILOGUE, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    keys = {"anonymous": "RssAnon:", "files": "RssFile:", "peak": "PEAK", "before": "BASE"}
    found = {name: re.search(rf"{key}\s*(\d+)", run.stdout) for name, key in keys.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def _weights(engine: LayaEngine, one: Inquiry) -> dict[str, NDArray[np.float64]]:
    return {
        name: np.array(reading.log_weights)
        for readings in engine.read(engine.prepare(one))
        for name, reading in readings.items()
    }


def _softmax(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.exp(weights - weights.max())
    shares /= shares.sum()
    return shares


def _cpu_ms(work: Callable[[Inquiry], object], one: Inquiry) -> float:
    begun_s = time.process_time()
    work(one)
    return (time.process_time() - begun_s) * 1e3


def _gemm_rate(hidden: int, rows: int) -> float:
    """GFLOP/s."""
    multiply = gemm(hidden, rows)
    multiply()
    begun_s, done = time.process_time(), 0
    while time.process_time() - begun_s < 0.2:
        done += multiply()
    return done / (time.process_time() - begun_s) / 1e9


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, first and third quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high
