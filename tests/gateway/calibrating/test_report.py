"""The report: numbers behind its charts, and a page that needs nothing but itself."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

from engines.contract import Choice, Facts
from gateway.calibrating.certifying import Terms
from gateway.calibrating.curves import (
    at_floor,
    confusions,
    reliability,
    risk_coverage,
    thinned,
    trades,
)
from gateway.calibrating.findings import Findings
from gateway.calibrating.judging import judged
from gateway.calibrating.report import page
from gateway.calibrating.results import Read
from gateway.calibrating.running import Rung, Task, findings
from gateway.calibrating.splitting import Split
from gateway.calibrating.summary import summary
from gateway.policy_file import Mode
from policies.gates import Gate
from tests.gateway.calibrating.rows import TEAM, chance, honest, row, truth
from tests.gateway.calibrating.test_reading import Told

HOSTILE = Choice({"a": None, "<script>alert(1)</script>": None, 'b"&': None}, "Which?")
OPEN = Gate(images=True)


class Named(Told):
    """A reader that only has a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def reads(first: int, n: int, right: float | None = None) -> list[dict[str, Read]]:
    """Of `honest`; or of an engine that is right with this probability."""
    found = []
    for i in range(first, first + n):
        weights = honest(f"state {i}", TEAM)
        if right is not None:
            best = truth(i) if chance("large", i) < right else (truth(i) + 1) % 3
            weights = [3.0 if k == best else 0.0 for k in range(3)]
        found.append({"q": Read(tuple(weights), 10 if right is None else 100, 0.001)})
    return found


def found_on(
    n: int, mode: Mode = "labels", *, question: Choice = TEAM, alone: bool = False
) -> Findings:
    rows = [row(i, truth(i), question) for i in range(n)]
    third = n // 3
    ladder = [
        Rung(Named("small"), Facts("tiny", "d1")),
        Rung(Named("large"), Facts("huge", "d2")),
    ]
    own = {
        "small": (reads(0, third), reads(third, n - third)),
        "large": (reads(0, third, 0.95), reads(third, n - third, 0.95)),
    }
    terms = Terms(0.1, 0.1, "cell", joint=True)
    split = Split(tuple(rows[:third]), tuple(rows[third:]), 2)
    task = Task(split, terms, mode, alone, lambda _, read: float(read.tokens), "tokens", "today")
    return findings(ladder[: 1 if alone else 2], own, task)


def test_the_page_needs_nothing_but_itself_and_its_charts_are_whole() -> None:
    html = page(found_on(1500))

    assert not re.search(r"(src|href)\s*=|@import|url\(|<script", html)
    charts = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        assert len(list(ET.fromstring(chart).iter())) > 10
    for words in ("at most 10 % are wrong", "What this does not say", "2 repeated", "small"):
        assert words in html


def test_names_from_the_labelled_file_stay_text() -> None:
    html = page(found_on(1500, question=HOSTILE))

    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_report_without_a_promise_says_what_it_takes() -> None:
    found = found_on(24)

    assert found.promised == 0
    assert "cannot promise 10 % with 16 tested labels; at least 35 labels" in page(found)


def test_one_engine_alone_has_no_bargain_to_show() -> None:
    found = found_on(900, alone=True)

    assert found.groups[0].trades == ()
    assert page(found).count("<svg") == 2
    assert list(found.policy.engines) == ["small"]


def test_agreement_is_with_the_last_engine_and_says_so() -> None:
    found = found_on(1500, "agreement")
    last = found.engines[-1]

    assert last.accuracy == 1.0
    assert found.policy.mode == "agreement"
    assert found.calibration.engines["large"].cells == {}
    assert "Agreement is not truth" in page(found)
    assert "other than the last engine" in page(found)


def test_json_says_the_same_as_the_policy() -> None:
    found = found_on(1500)
    said = json.loads(json.dumps(summary(found, {"policy.toml": "here"})))
    (floor,) = said["floors"]

    assert floor["floor"] == found.policy.floors[0].floor
    assert floor["chosen"]["kept"] == pytest.approx(floor["coverage"])
    assert floor["cost_accuracy"][0]["cost"] == pytest.approx(110)
    assert said["files"] == {"policy.toml": "here"}
    assert [one["name"] for one in said["engines"]] == ["small", "large"]
    assert said["engines"][1]["mean_tokens"] == 100


def test_bins_hold_every_answer_once() -> None:
    bins = reliability([0.05, 0.11, 0.19, 1.0], [False, False, True, True])

    assert [(round(b.stated, 3), b.right, b.count) for b in bins] == [
        (0.05, 0.0, 1),
        (0.15, 0.5, 2),
        (1.0, 1.0, 1),
    ]


def test_risk_is_counted_from_the_surest_down_with_ties_together() -> None:
    points = risk_coverage([0.9, 0.9, 0.5, 0.1], [True, False, True, True])

    assert [(p.floor, p.coverage, p.risk) for p in points] == [
        (0.9, 0.5, 0.5),
        (0.5, 0.75, 1 / 3),
        (0.1, 1.0, 0.25),
    ]
    assert len(thinned(list(range(1000)))) == 200
    assert thinned(list(range(1000)))[-1] == 999


def pair(weights: Sequence[float], refused: str | None = None) -> list[dict[str, Read]]:
    own = tuple(weights) if refused is None else ()
    return [{"q": Read(own, 10, refused=refused)}]


def test_every_floor_trades_cost_for_accuracy() -> None:
    rows = [row(0, 0), row(1, 1), row(2, 2)]
    right, wrong = [5.0, 0.0, 0.0], [0.0, 0.0, 5.0]
    small = judged(rows, [*pair(right), *pair(right), *pair([], "too_long")], OPEN)
    large = judged(rows, [*pair(wrong), *pair([0.0, 5.0, 0.0]), *pair(wrong)], OPEN)
    by_key = {(one.row, one.name): one for one in large}
    scored = list(zip(small, (0.9, 0.6, -1.0), strict=True))
    found = trades(scored, by_key, lambda name, _: {"s": 1.0, "l": 10.0}[name], ("s", "l"))

    assert [(t.floor, t.kept, t.accuracy) for t in found] == [
        (2.0, 0.0, pytest.approx(2 / 3)),
        (0.9, pytest.approx(1 / 3), 1.0),
        (0.6, pytest.approx(2 / 3), pytest.approx(2 / 3)),
    ]
    assert [round(t.cost * 3, 6) for t in found] == [32, 22, 12]  # what is refused costs nothing
    assert at_floor(found, 0.7).floor == 0.9
    assert at_floor(found, None).kept == 0.0


def test_the_commonest_confusions_come_first() -> None:
    rows = [row(i, 0 if i < 3 else 1) for i in range(5)]
    found = judged(rows, [*pair([0.0, 1.0, 0.0])] * 4 + [*pair([0.0, 0.0, 1.0])], OPEN)

    assert confusions(found) == [("q", "a", "b", 3), ("q", "b", "c", 1)]
