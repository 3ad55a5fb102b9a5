"""Ratios, quartiles, the A/A control and the goals."""

import math
from pathlib import Path

import pytest

from bench.callgrind import Recorded, grown, recorded
from bench.verdict import GOALS, Goal, Spread, goals, outcome, quantile, ratios

QUIET = 0.01
SAME = Spread((1.0,))
CPU = Goal("cpu", 1.8, wall=False)
WALL = Goal("p99", 2.0, wall=True)


def test_the_median_is_of_the_ratios_and_not_the_ratio_of_medians() -> None:
    spread = ratios([1.0, 20.0, 300.0], [1.0, 40.0, 100.0])

    assert spread.rounds == (1.0, 0.5, 3.0)
    assert spread.median == 1.0
    assert spread.quartiles == (0.75, 2.0)


def test_one_round_is_its_own_quartiles() -> None:
    spread = ratios([3.0], [2.0])

    assert spread.quartiles == (1.5, 1.5)


@pytest.mark.parametrize(("ours", "theirs"), [((), ()), ((1.0, 2.0), (1.0,))])
def test_rounds_that_do_not_pair_up_are_refused(
    ours: tuple[float, ...], theirs: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"round|zip"):
        ratios(ours, theirs)


@pytest.mark.parametrize(
    ("median", "verdict"), [(1.79, "met"), (1.8, "met"), (1.81, "missed"), (math.nan, "missed")]
)
def test_a_goal_is_met_up_to_its_bound(median: float, verdict: str) -> None:
    found = outcome(CPU, Spread((median,)), control=SAME, foreign_share=QUIET)

    assert found.verdict == verdict
    assert found.why == ""


@pytest.mark.parametrize("control", [0.94, 1.06])
@pytest.mark.parametrize("median", [0.1, 9.0])
def test_a_run_whose_control_is_off_says_nothing(control: float, median: float) -> None:
    found = outcome(CPU, Spread((median,)), control=Spread((control,)), foreign_share=QUIET)

    assert found.verdict == "inconclusive"
    assert "6.0%" in found.why


def test_a_control_within_five_per_cent_is_good_enough() -> None:
    found = outcome(CPU, Spread((1.0,)), control=Spread((1.04,)), foreign_share=QUIET)

    assert found.verdict == "met"


def test_wall_time_counts_on_a_quiet_machine_only() -> None:
    busy = outcome(WALL, Spread((1.0,)), control=None, foreign_share=0.10)
    quiet = outcome(WALL, Spread((1.0,)), control=None, foreign_share=0.09)

    assert busy.verdict == "inconclusive"
    assert quiet.verdict == "met"


def test_cpu_counts_on_a_busy_machine_too() -> None:
    found = outcome(CPU, Spread((1.0,)), control=SAME, foreign_share=0.9)

    assert found.verdict == "met"


def test_p99_is_exceeded_by_one_in_a_hundred() -> None:
    values = [float(i) for i in range(1, 101)]

    assert quantile(values, 0.99) == 99.0
    assert quantile(values, 1.0) == 100.0
    assert quantile(values, 0.5) == 50.0
    assert quantile([7.0], 0.99) == 7.0


def test_the_goals_file_holds_what_the_edge_bench_measures() -> None:
    found = goals("edge")

    assert found["cpu 1q / reference A"] == Goal("cpu 1q / reference A", 1.8, wall=False)
    assert found["cpu 64q / reference A"].at_most == 2.5
    assert found["cpu 1q / jevcompat mock"].at_most == 0.45
    assert found["cpu 1q / FastAPI echo"].at_most == 0.7
    assert [goal.name for goal in found.values() if goal.wall] == ["health p99, 32 clients / idle"]
    assert len(found) == 6


@pytest.mark.parametrize(
    "table", ["at_most = 0", "at_most = '1'", "at_most = true", "wall = true", "at_most = 1\nx = 1"]
)
def test_a_goal_that_cannot_be_checked_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "GOALS.toml"
    path.write_text(f"[edge.speed]\n{table}\n")

    with pytest.raises(ValueError, match=r"edge\.speed"):
        goals("edge", path)


def test_counts_are_recorded_with_their_python(tmp_path: Path) -> None:
    path = tmp_path / "GOALS.toml"
    path.write_text('[instructions]\npython = "3.11.7"\n"decode 1q" = 50000\n')

    assert recorded(path) == Recorded("3.11.7", {"decode 1q": 50000})


@pytest.mark.parametrize("table", ["", '"decode 1q" = 1', 'python = "3"\n"decode 1q" = 0.5'])
def test_counts_that_mean_nothing_are_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "GOALS.toml"
    path.write_text(f"[instructions]\n{table}\n")

    with pytest.raises(ValueError, match="instructions"):
        recorded(path)


def test_growth_beyond_three_per_cent_is_named() -> None:
    before = {"decode 1q": 1000, "encode 1q": 1000, "answers 1q": 1000}

    more = grown({"decode 1q": 1031, "encode 1q": 1030, "answers 1q": 500, "new": 9}, before)

    assert list(more) == ["decode 1q"]


def test_the_counts_of_the_goals_file_cover_every_stage() -> None:
    found = recorded(GOALS)

    assert set(found.counts) == {
        f"{stage} {body}" for stage in ("decode", "answers", "encode") for body in ("1q", "64q")
    }
