"""The fitted scales are usable, or the engine does not start."""

import json
import shutil
from pathlib import Path

import pytest

from engines.contract import Broken
from engines.starter import scales

STORED = Path(scales.__file__).parent / "weights" / "calibration.json"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A copy of the file."""
    return Path(shutil.copy(STORED, tmp_path))


def test_a_missing_file_is_refused(stored: Path) -> None:
    stored.unlink()

    with pytest.raises(Broken, match=r"calibration\.json, which .* cannot be read"):
        scales.load(stored)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_that_is_no_temperature_is_refused(stored: Path, temperature: float) -> None:
    calibration = json.loads(stored.read_text())
    calibration["kinds"]["choice"]["scale"]["temperature"] = temperature
    stored.write_text(json.dumps(calibration))

    with pytest.raises(Broken, match="calibration for choice"):
        scales.load(stored)


def test_another_calibration_is_another_digest(stored: Path) -> None:
    stored.write_bytes(stored.read_bytes() + b" ")

    assert scales.load(stored).digest != scales.load().digest
