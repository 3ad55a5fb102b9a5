"""`tiergate replay`: what another policy would have done with the decisions that were logged."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from gateway.cli.grammar import OK, Commands, probability
from gateway.cli.logged import add_log, engine_costs, moment, open_log
from gateway.cli.whole import print_whole
from gateway.config import Settings
from gateway.config_file import ConfigError, configuration_path, load
from gateway.engine_costs import EngineCosts
from gateway.ledger.decisions import Logged, Period
from gateway.policy_file import calibrations_of, floors_of, load_calibration, load_policy
from gateway.replaying import Estimate, Proposal, Replayed, as_logged, chosen, replayed
from gateway.usage import money
from policies.cascade import Calibrations, Floors
from policies.pricing import NANOS


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "replay", help="what another policy would have done with the logged decisions"
    )
    proposal = command.add_mutually_exclusive_group(required=True)
    proposal.add_argument("--policy", metavar="FILE", type=Path, help="a policy.toml to try")
    proposal.add_argument(
        "--floor", metavar="P", type=probability, help="one floor for everything, in [0, 1]"
    )
    command.add_argument(
        "--calibration",
        metavar="FILE",
        type=Path,
        help="the calibration.json that goes with it (default: probabilities as logged)",
    )
    add_log(command, "30d")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Print, for each model, what was done and what would have been."""
    settings = load(configuration_path(asked.config)).settings
    since_s = moment(asked.since, time.time())
    models = _models(settings, asked.model)
    proposals = {model: _proposal(asked, settings, models[model]) for model in models}
    with open_log(settings) as log:
        costs = engine_costs(settings, since_s)
        decided = {model: list(log.decisions(Period(since_s, model=model))) for model in models}
    found = {model: _both(decided[model], proposals[model], costs) for model in models}
    if asked.json:
        shown = {
            model: {"logged": _shown(before), "replayed": _shown(after)}
            for model, (before, after) in found.items()
        }
        print(json.dumps(shown, ensure_ascii=False))
        return OK
    for model, (before, after) in found.items():
        _show(model, before, after)
    return OK


def _models(settings: Settings, wanted: str | None) -> dict[str, tuple[str, ...]]:
    """Model → its engines, of those with several."""
    models = {
        name: one.engines
        for name, one in settings.models.items()
        if len(one.engines) > 1 and wanted in (None, name, *one.aliases)
    }
    if not models:
        raise ConfigError(
            f"there is no model '{wanted}' with several tiers"
            if wanted is not None
            else "no model has several tiers, so there is nothing to replay"
        )
    return models


def _proposal(asked: argparse.Namespace, settings: Settings, engines: tuple[str, ...]) -> Proposal:
    if asked.policy is None:
        floors = dict.fromkeys(engines, Floors(asked.floor))
    else:
        policy = load_policy(asked.policy)
        floors = {engine: floors_of(policy, engine) for engine in engines}
    if asked.calibration is None:
        return Proposal(engines, floors)
    before: dict[str, Calibrations] = {}
    if settings.cascade.calibration:
        made = load_calibration(Path(settings.cascade.calibration))
        before = {engine: calibrations_of(made, engine) for engine in engines}
    wanted = load_calibration(asked.calibration)
    after = {engine: calibrations_of(wanted, engine) for engine in engines}
    return Proposal(engines, floors, before, after)


def _both(
    decided: Sequence[Logged], proposal: Proposal, costs: EngineCosts
) -> tuple[Replayed, Replayed]:
    """As logged, and as it would have been."""
    engines = proposal.engines
    return (
        replayed(decided, [as_logged(one) for one in decided], engines, costs),
        replayed(decided, [chosen(one, proposal) for one in decided], engines, costs),
    )


def _shown(found: Replayed) -> dict[str, Any]:
    spent = found.spent
    return {
        "decisions": found.decisions,
        "undecided": found.undecided,
        "escalated": _estimate(found.escalated),
        "kept": found.kept,
        "agreement": {**_estimate(found.agreement), "unknown": found.unknown},
        "right": {**_estimate(found.right), "unknown": found.unknown_right},
        "tokens": dict(spent.tokens),
        "estimated_tokens": dict(spent.estimated),
        "cost": None if spent.nanos is None else money(spent.nanos),
        "cost_of_one": None
        if spent.each is None
        else [money(round(spent.each.low)), money(round(spent.each.high))],
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    ends = [one.interval.low, one.interval.high]
    return {"share": one.share, "interval": ends, "known": one.known}


def _show(model: str, before: Replayed, after: Replayed) -> None:
    table = Table("", "as logged", "replayed", title=model, box=None)
    for heading, said in _ROWS.items():
        table.add_row(heading, said(before), said(after))
    print_whole(table)


def _said(one: Estimate) -> str:
    if one.share is None:
        return "unknown"
    return f"{one.share:.1%} ({one.interval.low:.1%} to {one.interval.high:.1%}) of {one.known}"


def _agreement(found: Replayed) -> str:
    unknown = f"; {found.unknown} unknown" if found.unknown else ""
    return _said(found.agreement) + unknown


def _tokens(by_engine: Mapping[str, int]) -> str:
    return ", ".join(f"{engine} {tokens}" for engine, tokens in by_engine.items()) or "0"


def _cost(found: Replayed) -> str:
    spent = found.spent
    if spent.nanos is None:
        return "unpriced"
    return money(spent.nanos)


def _mean_cost(found: Replayed) -> str:
    each = found.spent.each
    if each is None:
        return "unknown"
    return f"{each.low * 1000 / NANOS:.3g} to {each.high * 1000 / NANOS:.3g}"


_ROWS: dict[str, Callable[[Replayed], str]] = {
    "decisions": lambda one: str(one.decisions),
    "of which nobody knows who answers": lambda one: str(one.undecided),
    "escalated": lambda one: _said(one.escalated),
    "kept answers that agree with the last engine": _agreement,
    "right, where the truth was told": lambda one: _said(one.right),
    "tokens": lambda one: _tokens(one.spent.tokens),
    "tokens, estimated": lambda one: _tokens(one.spent.estimated),
    "cost in USD": _cost,
    "cost of 1000 in USD": _mean_cost,
}
