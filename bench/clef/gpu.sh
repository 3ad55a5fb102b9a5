#!/usr/bin/env bash
# Everything about Clef that only a GPU can show, in one go: under 8 minutes on an H200, because
# each step is cut short where it would take longer; what it measured until then is kept.
#   bench/clef/gpu.sh [OUT]          full size, random weights, bf16 and fp8
#   bench/clef/gpu.sh OUT --tiny     the same path on a CPU, to see that it runs
# Needs the extra `clef`; flash-linear-attention and causal-conv1d where they can be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/reports/clef-gpu}
python=${PYTHON:-$( [ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
mkdir -p "$out"
if [ "${2:-}" = --tiny ]; then
    exec "$python" -m bench clef --tiny --out "$out/tiny.json"
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv | tee "$out/gpu.csv"
"$python" -c 'import torch, torchao, transformers as t; print(torch.__version__, torchao.__version__, t.__version__)' \
    | tee "$out/versions.txt"
for precision in bf16 fp8; do
    timeout 170 "$python" -m bench clef --device cuda --size full --precision "$precision" \
        --threads 0 --lengths 334,3400,16000 --rounds 15 --out "$out/$precision.json" \
        || echo "$precision: a goal was missed, or it was cut short ($?)" >&2
done
timeout 120 "$python" -m pytest -q -m gpu tests/engines/clef 2>&1 | tee "$out/tests.txt" \
    || echo "the tests of the GPU failed, or were cut short" >&2
ls "$out"
