"""`tiergate drift`: has the traffic changed, has a model, is a promise still kept?"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from rich.table import Table

from gateway.cli.grammar import ALARM, OK, Commands
from gateway.cli.logged import add_log, logged_model, moment, open_log
from gateway.cli.screen import screen
from gateway.config_file import ConfigError, configuration_path, load
from gateway.drifting import By, Drifted, drifted
from gateway.ledger.decisions import Alarm, Period, Trial
from policies.binomial import clopper_pearson


@dataclass(frozen=True, slots=True)
class _Found:
    """Everything that the command says."""

    drifts: list[Drifted]
    changes: list[tuple[str, str, float]]
    """Engine, new digest, since when."""
    trials: list[Trial]
    alarms: list[Alarm]

    @property
    def alarming(self) -> bool:
        """Whether something needs a person."""
        return bool(self.alarms) or any(one.changed for one in self.drifts)


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "drift", help="compare recent decisions with earlier ones; 3 while an alarm holds"
    )
    command.add_argument("--by", choices=get_args(By), default="cell")
    command.add_argument(
        "--reference", metavar="30d", default="30d", help="where the earlier ones begin (30d)"
    )
    add_log(command, "7d")
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what has changed; 3 when something needs a person."""
    settings = load(configuration_path(chosen.config)).settings
    now_s = time.time()
    since_s, from_s = moment(chosen.since, now_s), moment(chosen.reference, now_s)
    if from_s >= since_s:
        raise ConfigError(
            f"--reference {chosen.reference} does not begin before --since {chosen.since}"
        )
    with open_log(settings) as log:
        model = logged_model(settings, log, chosen.model)
        found = _Found(
            drifted(
                log.decisions(Period(from_s, since_s, model)),
                log.decisions(Period(since_s, model=model)),
                chosen.by,
            ),
            log.engine_changes(since_s),
            log.every_trial(),
            log.alarms(),
        )
    if chosen.json:
        print(json.dumps(_shown(found), ensure_ascii=False))
    else:
        _show(found)
    return ALARM if found.alarming else OK


def _shown(found: _Found) -> dict[str, Any]:
    return {
        "drift": [
            {
                "model": one.model,
                "engine": one.engine,
                "what": one.what,
                "before": one.before,
                "now": one.now,
                "escalated_before": one.escalated_before,
                "escalated_now": one.escalated_now,
                "likelihood": {"psi": one.likelihood.psi, "verdict": one.likelihood.verdict},
                "escalation": {"psi": one.escalation.psi, "verdict": one.escalation.verdict},
            }
            for one in found.drifts
        ],
        "model_changes": [
            {"engine": engine, "digest": digest, "since": date(at_s)}
            for engine, digest, at_s in found.changes
        ],
        "promises": [_promise(one) for one in found.trials],
        "alarms": [alarm_shown(one) for one in found.alarms],
    }


def _promise(one: Trial) -> dict[str, Any]:
    evidence = one.evidence
    share = clopper_pearson(evidence.wrong, evidence.seen)
    return {
        "engine": one.engine,
        "what": one.what,
        "promised": evidence.promised,
        "seen": evidence.seen,
        "disagreed": evidence.wrong,
        "disagreed_interval": [share.low, share.high],
        "evidence_against": evidence.against,
        "since": date(one.since_s),
    }


def alarm_shown(one: Alarm) -> dict[str, Any]:
    """The alarm as JSON content."""
    return {
        "alarm": one.alarm_id,
        "at": date(one.at_s),
        "kind": one.kind,
        "engine": one.engine,
        "what": one.what,
        "message": one.message,
        "cleared": None if one.cleared_s is None else date(one.cleared_s),
    }


def date(at_s: float) -> str:
    """As `2026-12-01T12:00:00Z`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _show(found: _Found) -> None:
    console = screen()
    console.print(_drift_table(found.drifts))
    lines = [
        f"{one.model}, {one.engine}, {one.what}: {clause}."
        for one in found.drifts
        for clause in one.findings
    ]
    lines += [
        f"{engine} has other weights, another tokenizer or another encoding since {date(at_s)}."
        for engine, _, at_s in found.changes
    ]
    lines += [_sentence(one) for one in found.trials]
    lines += [f"Alarm {one.alarm_id} since {date(one.at_s)}: {one.message}" for one in found.alarms]
    for line in lines or ["nothing has changed, and no promise is being tested"]:
        console.print(line, highlight=False)


def _drift_table(drifts: Sequence[Drifted]) -> Table:
    table = Table(box=None)
    for heading in ("model", "engine", "what", "before", "now", "likelihood", "up", "up before"):
        table.add_column(heading, overflow="fold")
    for one in drifts:
        verdict = one.likelihood.verdict.replace("_", " ")
        table.add_row(
            one.model,
            one.engine,
            one.what,
            str(one.before),
            str(one.now),
            f"{one.likelihood.psi:.2f} {verdict}",
            _share(one.escalated_now, one.now),
            _share(one.escalated_before, one.before),
        )
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else ""


def _sentence(one: Trial) -> str:
    evidence = one.evidence
    share = clopper_pearson(evidence.wrong, evidence.seen)
    return (
        f"{one.engine}, {one.what}: the last engine disagreed with {evidence.wrong} of "
        f"{evidence.seen} kept answers ({share.low:.1%} to {share.high:.1%}; at most "
        f"{evidence.promised:.1%} is promised; evidence against it {evidence.against:.2g})."
    )
