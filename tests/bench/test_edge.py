"""The edge bench: what it compares, and that it runs."""

import json
import os
import sys
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.findings import Cost, Findings
from bench.measure import Sample, Stretch, cpu_s, rss_bytes
from bench.procs import CannotServe, running
from bench.report import outcomes
from bench.verdict import goals

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def cost(cpu_us: float, foreign_share: float = 0.0) -> Cost:
    return Cost(cpu_us, 1000.0, 100, Sample(1.0, 0.1, 0.1, foreign_share, 0.0))


def findings(gateway_us: float, *, again_us: float = 100.0, foreign_share: float = 0.0) -> Findings:
    costs = {
        "tiergate": [cost(gateway_us, foreign_share)] * 3,
        "reference A": [cost(100.0)] * 3,
        "reference A again": [cost(again_us)] * 3,
    }
    return Findings(
        {"1q": costs},
        {"idle": [0.001], "32 clients": [0.003], "saturated": [0.1]},
        [0.0],
        [100, 101],
    )


def test_findings_are_held_against_the_goals() -> None:
    found = outcomes(findings(150.0), goals("edge"))

    assert {one.goal.name: one.verdict for one in found} == {
        "cpu 1q / reference A": "met",
        "health p99, 32 clients / idle": "missed",
        "memory after 100,000 requests / warm": "met",
    }


def test_a_server_that_differs_from_itself_makes_only_ratios_to_it_inconclusive() -> None:
    found = outcomes(findings(150.0, again_us=110.0), goals("edge"))

    assert [one.verdict for one in found] == ["inconclusive", "missed", "met"]


def test_a_busy_machine_makes_wall_time_inconclusive() -> None:
    found = outcomes(findings(150.0, foreign_share=0.5), goals("edge"))

    assert [one.verdict for one in found] == ["met", "inconclusive", "met"]


def test_a_bench_that_does_not_exist_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edgy"]) == 2
    assert "edge" in capsys.readouterr().err


@LINUX
def test_a_stretch_counts_the_cpu_of_the_process_it_looks_at() -> None:
    stretch = Stretch(os.getpid())

    while stretch.spent_s() < 0.05:
        sum(range(10_000))
    sample = stretch.sample()

    assert sample.server_cpu_s >= 0.05
    assert 0.0 <= sample.foreign_share <= 1.0
    assert cpu_s(os.getpid()) >= sample.server_cpu_s
    assert rss_bytes(os.getpid()) > 1_000_000


@LINUX
def test_a_server_that_ends_at_once_is_reported_with_what_it_said() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no such luck')")

    with (
        pytest.raises(CannotServe, match="no such luck"),
        running("dud", command, core=min(os.sched_getaffinity(0)), ready=b"/"),
    ):
        pass


@LINUX
@pytest.mark.slow
def test_a_quick_run_measures_everything(tmp_path: Path) -> None:
    path = tmp_path / "edge.json"

    code = main(["edge", "--quick", "--rounds", "1", "--json", str(path)])

    written = json.loads(path.read_text())
    assert code == 0
    assert written["goals"].keys() == goals("edge").keys()
    assert written["findings"]["costs"]["64q"]["tiergate"][0]["answered"] > 0
    assert "| tiergate |" in path.with_suffix(".md").read_text().replace("**", "")
