"""Engines are found by kind and imported only when asked for."""

import subprocess
import sys

import pytest

from engines.registry import KINDS, engine_class


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_leads_to_a_class(kind: str) -> None:
    assert callable(engine_class(kind))


def test_an_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        engine_class("no-such-engine")


@pytest.mark.parametrize("package", ["engines", "engines.registry", "policies", "gateway.wiring"])
def test_importing_the_house_imports_no_model_runtime(package: str) -> None:
    program = (
        f"import sys, importlib; importlib.import_module('{package}')\n"
        "heavy = {'torch', 'transformers', 'onnxruntime', 'numpy', 'tokenizers'}\n"
        "print(','.join(sorted(heavy & set(sys.modules))))"
    )

    imported = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert imported.stdout.strip() == ""
