"""Whoever does not configure Clef does not pay for torch."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "modules",
    ["engines, engines.registry, engines.lane, policies", "gateway.cli", "gateway.wiring"],
)
def test_torch_is_imported_by_the_engine_alone(modules: str) -> None:
    heavy = "{'torch', 'transformers', 'torchao', 'PIL'}"
    program = f"import sys, {modules}; sys.exit(len({heavy} & sys.modules.keys()))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_images_the_vision_library_is_not_imported() -> None:
    program = (
        "import sys; from tests.engines.clef.golden import tiny_engine; "
        "tiny_engine(max_images=0); sys.exit('transformers' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
