"""From settings, policies and calibrations to the plans that answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Facts, Inquiry, Reading, Tally
from gateway.atomic import write_whole
from gateway.config import ModelSection, Settings
from gateway.config_cascade import CascadeSection, GateSection
from gateway.config_engines import ScriptedEngineSection
from gateway.config_file import ConfigError, load
from gateway.plan import Plan
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    PolicyFile,
    Promise,
    calibration_digest,
    calibration_text,
    policy_text,
)
from gateway.wiring_plans import new_plans, promises, refuse_unfit
from policies.calibration import Calibration
from policies.cascade import NEVER

SCRIPTED = ScriptedEngineSection(kind="scripted")
FACTS = {
    "small": Facts("s", "d1", not_competent=frozenset({"score"})),
    "large": Facts("l", "d2", images=True, joint=True, native_confidence="top"),
}
MEASURED = EngineCalibration("d1", {"noul": Calibration(2.0)})
CALIBRATION = CalibrationFile({"small": MEASURED})
POLICY = PolicyFile(
    created="2026-11-30T12:00:00Z",
    risk=0.05,
    delta=0.1,
    mode="labels",
    joint=False,
    engines={"small": Bound("d1", calibration_digest(MEASURED))},
    floors=(Promise("small", True, 400, 0.1, cell="noul", floor=0.91, accepted=120, errors=2),),
)


class Named:
    """A reader that is never asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> dict[str, Reading]:
        raise NotImplementedError


def settings_of(**cascade: Any) -> Settings:
    return Settings(
        default_model="both",
        engines={"small": SCRIPTED, "large": SCRIPTED},
        models={
            "both": ModelSection(tiers=("small", "large"), aliases=("jev-latest",)),
            "large": ModelSection(engine="large"),
        },
        cascade=CascadeSection(**cascade),
    )


def plans_of(settings: Settings, facts: dict[str, Facts] = FACTS) -> dict[str, Plan]:
    readers = {name: Named(name) for name in facts}
    return new_plans(settings, readers, facts, promises(settings.cascade, facts))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """What `[cascade]` needs to use the policy above."""
    policy, calibration = tmp_path / "policy.toml", tmp_path / "calibration.json"
    write_whole(policy, policy_text(POLICY))
    write_whole(calibration, calibration_text(CALIBRATION))
    return {"policy": str(policy), "calibration": str(calibration)}


def test_a_model_has_its_tiers_and_its_aliases_the_same_plan() -> None:
    plans = plans_of(settings_of())

    assert plans["both"].engines == ("small", "large")
    assert plans["jev-latest"] is plans["both"]
    assert plans["large"].engines == ("large",)


def test_an_engine_says_what_it_is_fit_for() -> None:
    small, large = plans_of(settings_of())["both"].tiers

    assert small.gate.not_competent == {"score"}
    assert not small.gate.images
    assert large.gate.images
    assert large.joint
    assert large.native == "top"


def test_floors_and_gates_come_from_the_configuration() -> None:
    floors = {"small": {"choice:11+": 0.95, "noul": 0.7, "a" * 16: 0.6, "otherwise": 0.85}}
    gates = {"small": GateSection(max_options=20, languages=("en",), known_bad=("b" * 16,))}
    (small, _) = plans_of(settings_of(floors=floors, gates=gates))["both"].tiers

    assert small.floor("choice:11+", "") == (0.95, "low_confidence")
    assert small.floor("noul", "a" * 16)[0] == 0.6
    assert small.floor("score:2", "")[0] == 0.85
    assert small.gate.max_options == 20
    assert small.gate.languages == frozenset({"en"})
    assert small.gate.known_bad == {"b" * 16}


def test_a_policy_that_holds_replaces_the_floors(files: dict[str, str]) -> None:
    (small, large) = plans_of(settings_of(**files))["both"].tiers

    assert small.floor("noul", "") == (0.91, "low_confidence")
    assert small.floor("choice:2", "") == (NEVER, "no_promise")
    assert small.calibrations.of("noul", "").temperature == 2.0
    assert large.calibrations.of("noul", "").temperature == 1.0


@pytest.mark.parametrize(
    ("changed", "expected"),
    [("escalate", (NEVER, "suspended")), ("floors", (0.8, "low_confidence"))],
)
def test_other_weights_suspend_the_promise(
    files: dict[str, str], changed: str, expected: tuple[float, str], caplog: Any
) -> None:
    facts = FACTS | {"small": replace(FACTS["small"], digest="other")}
    settings = settings_of(on_suspended=changed, **files)
    (small, _) = plans_of(settings, facts)["both"].tiers

    assert small.floor("noul", "") == expected
    assert small.calibrations.of("noul", "").temperature == 1.0
    assert promises(settings.cascade, facts)["small"].suspended is not None
    assert "suspended" in caplog.text


def test_a_changed_calibration_suspends_the_promise(files: dict[str, str]) -> None:
    other = EngineCalibration("d1", {"noul": Calibration(3.0)})
    write_whole(Path(files["calibration"]), calibration_text(CalibrationFile({"small": other})))

    (small, _) = plans_of(settings_of(**files))["both"].tiers

    assert small.floor("noul", "") == (NEVER, "suspended")


def test_weighing_errors_needs_a_price_of_the_better_engine() -> None:
    with pytest.raises(ConfigError, match=r"prices\.engines\.large"):
        plans_of(settings_of(cost_of_error=0.1))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[models.m]\ntiers = ['a', 'a']\n", 1, "twice"),
        ("[models.m]\nengine = 'a'\ntiers = ['a']\n", 1, "either an engine, or tiers"),
        ("[models.m]\ndescription = 'x'\n", 1, "either an engine, or tiers"),
        ("[cascade]\nmode = 'on'\n", 2, "'off', 'shadow' or 'enforce'"),
        ("[cascade.floors]\nstarter = { chioce = 0.5 }\n", 1, "no kind, no cell"),
        ("[cascade.floors]\nstarter = { choice = 1.5 }\n", 1, "in [0, 1]"),
        ("[cascade.floors]\nnobody = { choice = 0.5 }\n", None, "there are: starter"),
        ("[cascade.gates.starter]\nlanguages = ['de-AT']\n", 2, "language code"),
        ("[cascade.gates.starter]\nknown_bad = ['x']\n", 2, "fingerprint"),
    ],
)
def test_a_bad_cascade_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(ConfigError) as refused:
        load(path)

    assert words in str(refused.value)
    if line is not None:
        assert f"{path}:{line}" in str(refused.value)


@pytest.mark.parametrize(
    ("broken", "old", "new"),
    [
        ("policy", "risk = 0.05", "risk = 5"),
        ("policy", 'cell = "noul"', 'cell = "nuol"'),
        ("policy", "version", "["),
        ("calibration", "2.0", "-2.0"),
        ("calibration", "digest", "dgst"),
        ("calibration", "{", "["),
    ],
)
def test_without_engines_the_files_are_judged_with_the_words_of_a_start(
    files: dict[str, str], broken: str, old: str, new: str
) -> None:
    refuse_unfit(settings_of(**files))
    path = Path(files[broken])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(ConfigError) as start:
        plans_of(settings_of(**files))
    with pytest.raises(ConfigError) as alone:
        refuse_unfit(settings_of(**files))

    assert str(alone.value) == str(start.value)
    assert str(alone.value).startswith(str(path))


def test_without_engines_missing_prices_are_told_as_by_a_start() -> None:
    with pytest.raises(ConfigError, match=r"prices\.engines\.large"):
        refuse_unfit(settings_of(cost_of_error=0.1))


def test_a_calibration_without_a_policy_is_judged_too(files: dict[str, str]) -> None:
    Path(files["calibration"]).write_text("{}")

    with pytest.raises(ConfigError, match="engines: this is missing"):
        refuse_unfit(settings_of(calibration=files["calibration"]))
