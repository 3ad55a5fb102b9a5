"""`tiergate policy show | verify`: what is promised, and whether it holds for these engines."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from gateway.calibrating.summary import promise_json
from gateway.cli.calibrate_print import floors_table, tell_meaning
from gateway.cli.grammar import ALARM, OK, Commands, add_config, add_json
from gateway.cli.screen import screen
from gateway.cli.waiting import told_when_slow
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.policy_file import (
    CalibrationFile,
    PolicyFile,
    load_calibration,
    load_policy,
    suspended,
)
from gateway.wiring_engines import open_lanes

_POLICY, _CALIBRATION = "policy.toml", "calibration.json"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Whether the promise about an engine holds."""

    engine: str
    why: str | None
    """Why it does not; `None` = it holds."""


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("policy", help="show what is promised, or verify that it holds")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="floors, their evidence and what they mean")
    show.set_defaults(act=_show)
    verify = actions.add_parser(
        "verify", help="compare the policy with the engines as they are now; 3 if a promise fell"
    )
    verify.add_argument(
        "--calibration", metavar="FILE", type=Path, help="default: the configuration's"
    )
    verify.set_defaults(act=_verify)
    for action in (show, verify):
        action.add_argument(
            "policy", nargs="?", metavar="FILE", type=Path, help="default: the configuration's"
        )
        add_config(action)
        add_json(action)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Do what was chosen; 3 when a promise does not hold."""
    settings = load(configuration_path(chosen.config)).settings
    path = chosen.policy or Path(settings.cascade.policy or _POLICY)
    code: int = chosen.act(chosen, settings, load_policy(path))
    return code


def _show(chosen: argparse.Namespace, settings: Settings, policy: PolicyFile) -> int:
    if chosen.json:
        floors = [promise_json(one, policy) for one in policy.floors]
        said = {"created": policy.created, "risk": policy.risk, "delta": policy.delta}
        said |= {"mode": policy.mode, "joint": policy.joint, "floors": floors}
        print(json.dumps(said, ensure_ascii=False))
        return OK
    console = screen()
    console.print(floors_table(policy))
    tell_meaning(console, policy)
    return OK


def _verify(chosen: argparse.Namespace, settings: Settings, policy: PolicyFile) -> int:
    beside = chosen.policy.parent / _CALIBRATION if chosen.policy else Path(_CALIBRATION)
    path = chosen.calibration or Path(settings.cascade.calibration or beside)
    verdicts = _verdicts(settings, policy, load_calibration(path))
    if chosen.json:
        said = [{"engine": v.engine, "holds": v.why is None, "why": v.why} for v in verdicts]
        print(json.dumps(said, ensure_ascii=False))
    else:
        table = Table("engine", "promise", "why")
        for one in verdicts:
            table.add_row(one.engine, "holds" if one.why is None else "suspended", one.why or "")
        print_whole(table)
    return ALARM if any(one.why is not None for one in verdicts) else OK


def _verdicts(
    settings: Settings, policy: PolicyFile, calibration: CalibrationFile
) -> list[_Verdict]:
    engines = {name: settings.engines[name] for name in policy.engines if name in settings.engines}
    if not engines:
        raise ConfigError(
            f"the policy is about {', '.join(policy.engines) or 'no engine'}, and the "
            f"configuration has {', '.join(settings.engines) or 'none'}"
        )
    only = settings.model_copy(update={"engines": engines})
    with told_when_slow() as told, open_lanes(only, told) as lanes:
        digests = {name: lane.engine.facts.digest for name, lane in lanes.items()}
    return [
        _Verdict(name, "there is no such engine any more")
        if name not in digests
        else _Verdict(name, suspended(policy, calibration, name, digests[name]))
        for name in policy.engines
    ]
