"""Settings of a gateway in front of the tiny Clef checkpoint."""

from typing import Any

from gateway.config import ModelSection, Settings
from gateway.config_clef import ClefEngineSection
from tests.engines.clef.golden import TINY


def section(**options: Any) -> ClefEngineSection:
    plain: dict[str, Any] = {"devices": ("cpu",), "precision": "fp32", "threads": 1}
    return ClefEngineSection(kind="clef", path=str(TINY), **(plain | options))


def settings_of(one: ClefEngineSection) -> Settings:
    return Settings(
        default_model="clef", engines={"clef": one}, models={"clef": ModelSection(engine="clef")}
    )
