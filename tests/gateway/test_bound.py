"""What is held is never less than what an engine reads: else a budget could be overspent."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.appetite import Appetite
from engines.contract import Asset, Choice, Engine, Facts, Inquiry, Noul, Question, Score
from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.auth import Caller
from gateway.bound import rough_bound, token_bound
from gateway.charging import Order, Terms, bound_of
from gateway.config import Settings
from gateway.config_prices import PricesSection, TariffSection, engine_prices
from gateway.dialects.systemone import decode
from gateway.ledger.calendar import Calendar
from gateway.plan import Plan, Tier
from gateway.wiring_limits import ask_limits
from policies.limits import Limits
from tests.engines.clef.golden import tiny_engine as tiny_clef
from tests.engines.laya.golden import tournament_engine
from tests.engines.test_laws import ENGINES, LAW, inquiries_for, read
from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings

OPENED = {
    **ENGINES,
    "clef joint": lambda: tiny_clef(reading="joint"),
    "laya tournament": tournament_engine,
}
LONGER = "\U0001d160"
"""Four bytes that become twelve when characters are put together."""
SHORT: dict[str, Question] = {
    "noul": Noul(),
    "sides": Noul("?", true="y", false="n"),
    "one option": Choice({"a": None}),
    "options": Choice({"a": None, "b": "x"}),
    "levels": Score(["x", "y"]),
}
HARD: dict[str, Inquiry] = {
    "longer": Inquiry(LONGER * 30, {"q": Choice({LONGER * 9: LONGER * 9}, LONGER * 9)}),
    "escaped": Inquiry("\x01" * 40, {"q": Score(['"' * 40, "\x01" * 40, "\\" * 40])}),
    "nested": Inquiry({"a": [1, 2, [3]] * 9}, {"q": Noul({"x": [1, [2, {"y": "z" * 9}]]})}),
    "huge number": Inquiry([2**200], {"q": Noul({"n": -(2**90)}, true=[2**70])}),
    "many options": Inquiry(
        "word " * 40, {"q": Choice({f"option {n}": f"about {n}" for n in range(60)}, "which?")}
    ),
    "long id": Inquiry("s", {"i" * 300: Noul(), "j" * 300: Noul("?")}),
}


NOT_FITTED = [name for name in OPENED if name != "fitted"]
"""Engines that read any question."""


@pytest.fixture(params=OPENED, scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine[Any]]:
    with closing(OPENED[request.param]()) as opened:
        yield opened


def read_tokens(engine: Engine[Any], inquiry: Inquiry) -> int:
    return sum(reading.tokens for reading in read(engine, inquiry).values())


@LAW
@given(data=st.data())
def test_no_engine_reads_more_than_its_bound(engine: Engine[Any], data: st.DataObject) -> None:
    inquiry = data.draw(inquiries_for(engine))

    assert read_tokens(engine, inquiry) <= token_bound(inquiry, engine.facts.appetite)


@pytest.mark.parametrize("engine", NOT_FITTED, indirect=True)
@pytest.mark.parametrize("state", ["", "s"])
@pytest.mark.parametrize("name", SHORT)
def test_the_words_that_an_engine_adds_are_in_its_bound(
    engine: Engine[Any], name: str, state: str
) -> None:
    inquiry = Inquiry(state, {"q": SHORT[name]})

    assert read_tokens(engine, inquiry) <= token_bound(inquiry, engine.facts.appetite)


@pytest.mark.parametrize("engine", NOT_FITTED, indirect=True)
@pytest.mark.parametrize("name", HARD)
def test_texts_that_grow_on_their_way_into_the_model_are_in_its_bound(
    engine: Engine[Any], name: str
) -> None:
    assert read_tokens(engine, HARD[name]) <= token_bound(HARD[name], engine.facts.appetite)


NUMBERS = ("1e15", "-1E5", "9", str(2**70), "null", "true", "[]", "{}")
STRINGS = ('""', '"\\u0001"', '"\\n"', '"\U0001d160"', '"\\ud834\\udd60"', '"\u00e9"', '"word"')
PARTS = st.sampled_from([*NUMBERS, *STRINGS])
"""JSON whose tokens are many for its length."""
SENT = st.lists(PARTS, min_size=1, max_size=30).map(lambda parts: f"[{','.join(parts)}]")


@st.composite
def asked(draw: st.DrawFn) -> str:
    """A question as it is sent."""
    instructions = draw(SENT)
    match draw(st.sampled_from(["noul", "choice", "score"])):
        case "noul":
            criteria = f'{{"true":{draw(SENT)},"false":{draw(SENT)}}}'
        case "choice":
            names = draw(st.lists(st.integers(0, 99), min_size=1, max_size=40, unique=True))
            options = ",".join(f'"{name}":null' for name in names)
            criteria = f"{{{options}}}"
        case _:
            levels = ",".join(draw(st.lists(st.just('""'), min_size=2, max_size=10)))
            criteria = f"[{levels}]"
            return f'{{"type":"score","instructions":{instructions},"criteria":{criteria}}}'
    kind = "noul" if '"true"' in criteria[:8] else "choice"
    return f'{{"type":"{kind}","instructions":{instructions},"criteria":{criteria}}}'


@given(state=SENT, questions=st.lists(asked(), min_size=1, max_size=4), data=st.data())
def test_the_rough_bound_is_never_below_the_exact_one(
    state: str, questions: list[str], data: st.DataObject
) -> None:
    appetites = data.draw(
        st.lists(
            st.builds(Appetite, st.integers(0, 500), st.integers(0, 99), st.booleans()),
            min_size=1,
            max_size=2,
        )
    )
    named = ",".join(f'"{LONGER * n}":{one}' for n, one in enumerate(questions, 1))
    body = f'{{"state":{state},"questions":{{{named}}}}}'.encode()
    inquiry = decode(body, None, ask_limits(Settings()))[1]
    appetites = [replace(one, named=data.draw(st.booleans())) for one in appetites]

    rough = rough_bound(appetites)

    assert rough is not None
    exact = sum(token_bound(inquiry, one) for one in appetites)
    assert exact <= len(questions) * (rough.each + rough.byte * len(body))


def test_there_is_no_rough_bound_where_options_are_read_in_groups() -> None:
    assert rough_bound([Appetite(), Appetite(group=4)]) is None


def test_images_are_held_for_as_long_as_a_prompt_may_be() -> None:
    question = {"q": Noul("?")}
    image = {"a": Asset("image/png", b"")}
    seeing = Appetite(pictures=5000)

    assert token_bound(Inquiry("s", question, image), seeing) >= 5000
    assert token_bound(Inquiry("s", question), seeing) < 100


@pytest.mark.parametrize("limit", ["tokens_per_day", "tpm"])
@pytest.mark.parametrize(
    "changes",
    [
        {"state": {"n": 2**70}},
        {"questions": {"q": {"type": "noul", "instructions": [2**70]}}},
        {"questions": {"q": {"type": "choice", "criteria": {"a": {"n": 2**70}, "b": None}}}},
    ],
    ids=["state", "instructions", "option"],
)
async def test_whole_numbers_of_any_length_have_a_bound_too(
    gateway: Gateway, tmp_path: Path, limit: str, changes: dict[str, Any]
) -> None:
    settings = ledger_settings(tmp_path)
    limits: dict[str, Any] = {limit: 100_000}
    key = bearer(settings, **limits)
    body = {"state": "s", "questions": {"q": {"type": "noul", "instructions": "?"}}, **changes}
    with gateway(settings) as client:
        answer = await client.post("/v1/systemone", json=body, headers=key)

    assert answer.status_code == 200
    assert charged(settings)[0]["tokens"] == answer.json()["usage"]["input_tokens"]


class Wordy(ScriptedEngine):
    """Adds many words of its own to every question."""

    @property
    def facts(self) -> Facts:
        return replace(super().facts, appetite=Appetite(question=400))


async def test_what_an_engine_adds_is_held_too(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=300)
    body = {"state": "s", "questions": {"q": {"type": "noul", "instructions": "?"}}}
    with gateway(settings, Wordy()) as client:
        refused = await client.post("/v1/systemone", json=body, headers=key)

    assert refused.status_code == 429
    assert refused.json()["detail"]["x_wanted"] == 400 + len("s") + len("?") + 2 * 16


def test_questions_that_are_read_at_the_same_time_cost_an_hours_price_each() -> None:
    prices = PricesSection(
        engines={"e": (TariffSection(effective=date(2026, 1, 1), usd_per_hour=Decimal("3.6")),)}
    )
    reader = Lane("e", ScriptedEngine(), rows(4), max_waiting=8)
    plan, caller = Plan("m", (Tier(reader),)), Caller("k", limits=Limits(nanos_per_day=1))
    listed = engine_prices(prices)
    terms = Terms(Calendar(), listed, listed.version, longest_s=8.0)

    held = [
        bound_of(
            Order(
                caller,
                "r",
                None,
                plan,
                Inquiry("s", {f"q{n}": Noul("?") for n in range(many)}),
                b"",
            ),
            plan.readers,
            terms,
            1_796_000_000.0,
        ).nanos
        for many in (1, 3)
    ]
    reader.close(drain_s=1.0)

    assert held == [8_000_000, 24_000_000]  # a tenth of a cent a second
