"""Where `tiergate fit` writes: looked at before anything is fitted, written once it is."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.atomic import refuse_target, write_together
from gateway.config_file import ConfigError
from gateway.policy_file import (
    CalibrationFile,
    PolicyFile,
    calibration_text,
    load_calibration,
    load_policy,
    policy_text,
)

if TYPE_CHECKING:
    from gateway.fitting.promising import Change


@dataclass(frozen=True, slots=True)
class Registry:
    """The policy and the calibration that promises are put into, as they were before."""

    policy_path: Path
    calibration_path: Path
    policy: PolicyFile | None
    calibration: CalibrationFile | None

    def write(self, new: PolicyFile, change: "Change") -> None:
        """Put what fitting changed into both files; `new` says what is promised.

        Raises:
            OSError: one of them cannot be written; then neither is.
        """
        from gateway.fitting.promising import promised

        policy, calibration = promised(self.policy, new, self.calibration, change)
        write_together(
            {
                self.calibration_path: calibration_text(calibration),
                self.policy_path: policy_text(policy),
            }
        )


def registry(chosen: argparse.Namespace) -> Registry | None:
    """What `--policy` and `--calibration` name; `None` where no promise is wanted.

    Raises:
        ConfigError: a file cannot be read or holds something else, or promises something else, or
            two things would be written to one file.
        OSError: something cannot be written; it names the path.
    """
    from gateway.fitting.promising import refuse_other_terms

    policy_path: Path | None = chosen.policy
    calibration_path: Path | None = chosen.calibration
    if policy_path is None and calibration_path is not None:
        raise ConfigError("--calibration goes with --policy; give that too")
    if policy_path is not None and calibration_path is None:
        calibration_path = policy_path.with_name("calibration.json")
    targets = [path for path in (policy_path, calibration_path, chosen.report) if path is not None]
    _refuse_targets(targets, chosen.labels)
    if policy_path is None or calibration_path is None:
        return None
    policy = load_policy(policy_path) if policy_path.exists() else None
    calibration = load_calibration(calibration_path) if calibration_path.exists() else None
    refuse_other_terms(policy, chosen.risk, "labels")
    return Registry(policy_path, calibration_path, policy, calibration)


def _refuse_targets(targets: Sequence[Path], rows: Sequence[Path]) -> None:
    taken = {path.resolve() for path in rows}
    for path in targets:
        refuse_target(path)
        if path.resolve() in taken:
            raise ConfigError(f"{path}: it is named twice; what is written needs a file of its own")
        taken.add(path.resolve())
