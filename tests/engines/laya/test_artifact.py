"""An import appears whole or not at all, is reused, and notices other weights."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.laya_checkpoint import random_checkpoint
from bench.laya_measure import memory_kib
from engines.laya.artifact import artifact, has_vnni, imported, sha256_of
from engines.laya.checkpoint import load
from engines.laya.desk import opened
from engines.laya.settings import LayaSettings
from engines.laya.tensors import CheckpointError


def test_an_import_leaves_a_graph_its_weights_and_a_manifest(copied: Path) -> None:
    made = imported(load(copied), "int8")

    assert sorted(path.name for path in made.graph.parent.iterdir()) == [
        "graph.onnx",
        "manifest.json",
        "weights.bin",
    ]
    assert made.manifest.source_sha256 == sha256_of(copied / "model.safetensors")
    assert made.manifest.precision == "int8"
    assert made.manifest.bits == (8 if has_vnni() else 7)
    assert made.manifest.tool.startswith("tiergate ")


def test_the_first_opening_imports_and_the_next_one_reuses(copied: Path) -> None:
    opened(copied, LayaSettings(copied))
    manifest = copied / "tiergate-row-fp32/manifest.json"
    written_ns = manifest.stat().st_mtime_ns

    opened(copied, LayaSettings(copied))

    assert manifest.stat().st_mtime_ns == written_ns


def test_the_package_onnx_is_not_needed_once_there_is_an_import(copied: Path) -> None:
    imported(load(copied), "fp32")
    program = (
        "import sys; sys.modules['onnx'] = None\n"
        "from pathlib import Path\n"
        "from engines.laya.desk import opened\n"
        "from engines.laya.settings import LayaSettings\n"
        f"opened(Path({str(copied)!r}), LayaSettings(Path({str(copied)!r})))\n"
    )

    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert run.returncode == 0, run.stderr.decode()


def test_without_onnx_and_without_an_import_the_error_says_what_to_install(copied: Path) -> None:
    program = (
        "import sys; sys.modules['onnx'] = None\n"
        "from pathlib import Path\n"
        "from engines.laya.desk import opened\n"
        "from engines.laya.settings import LayaSettings\n"
        f"opened(Path({str(copied)!r}), LayaSettings(Path({str(copied)!r})))\n"
    )

    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert run.returncode == 1
    assert "install the extra laya" in run.stderr.decode()


def test_serving_needs_neither_torch_nor_transformers(copied: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None\n"
        "from engines.contract import Inquiry, Noul\n"
        "from engines.laya.engine import laya_engine\n"
        f"engine = laya_engine(path={str(copied)!r}, language='any')\n"
        "piece = engine.prepare(Inquiry('s', {'q': Noul('Is it?')}))[0]\n"
        "assert engine.read([piece])[0]['q'].tokens == piece.tokens\n"
    )

    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert run.returncode == 0, run.stderr.decode()


def test_touched_weights_are_hashed_again_and_changed_ones_are_imported_again(
    copied: Path,
) -> None:
    checkpoint, weights = load(copied), copied / "model.safetensors"
    imported(checkpoint, "fp32")
    os.utime(weights, ns=(1, 1))
    touched = artifact(checkpoint, "fp32")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)

    changed = artifact(checkpoint, "fp32")

    assert touched is not None
    assert changed is None


def test_an_import_of_an_older_drawing_or_for_another_processor_is_not_used(copied: Path) -> None:
    checkpoint = load(copied)
    path = imported(checkpoint, "int8").graph.with_name("manifest.json")
    whole = json.loads(path.read_text("utf-8"))

    for change in ({"drawing": 0}, {"bits": 4}, {"unknown": 1}):
        path.write_text(json.dumps(whole | change), "utf-8")
        assert artifact(checkpoint, "int8") is None


def test_weights_with_another_digest_than_the_given_one_are_refused(copied: Path) -> None:
    with pytest.raises(CheckpointError, match="SHA-256"):
        imported(load(copied), "fp32", sha256="0" * 64)

    assert not (copied / "tiergate-row-fp32").exists()
    digest = sha256_of(copied / "model.safetensors").upper()
    assert imported(load(copied), "fp32", sha256=digest).graph.is_file()


def test_an_import_that_is_interrupted_leaves_the_older_one_and_no_rubbish(copied: Path) -> None:
    checkpoint = load(copied)
    older = imported(checkpoint, "fp32").graph.read_bytes()

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imported(checkpoint, "fp32", progress=interrupt)

    kept = artifact(checkpoint, "fp32")
    assert kept is not None
    assert kept.graph.read_bytes() == older
    assert not list(copied.glob(".import-*"))


def test_progress_rises_to_what_was_expected(copied: Path) -> None:
    told: list[tuple[int, int]] = []

    imported(load(copied), "fp32", progress=lambda done, total: told.append((done, total)))

    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_named(copied: Path) -> None:
    copied.chmod(0o500)

    with pytest.raises(CheckpointError, match="cannot be written"):
        imported(load(copied), "fp32")


def test_the_embedding_table_stays_in_half_precision(copied: Path) -> None:
    import onnx

    made = imported(load(copied), "fp32")

    graph = onnx.load(str(made.graph), load_external_data=False).graph
    table = next(tensor for tensor in graph.initializer if tensor.name == "tokens")
    assert table.data_type == onnx.TensorProto.FLOAT16


@pytest.mark.slow
def test_an_import_needs_less_memory_than_1_3_times_the_graph(tmp_path: Path) -> None:
    path = random_checkpoint(tmp_path, "quarter")

    used = memory_kib(path, "import fp32")

    graph_kib = (path / "tiergate-row-fp32/weights.bin").stat().st_size / 1024
    assert graph_kib > 400_000
    assert used["peak"] - used["before"] < 1.3 * graph_kib
