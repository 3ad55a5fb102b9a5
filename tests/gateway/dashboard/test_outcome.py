"""What the playground says of an answer: in words, and with a unit behind every number."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest

from engines.contract import Reading
from engines.scripted import ScriptedEngine
from gateway.dashboard.playground import Outcome
from gateway.dashboard.wording import DOUBTS, FORMULAS, SCOPES
from gateway.issuing import FORMULAS as KNOWN_FORMULAS
from gateway.issuing import SCOPES as KNOWN_SCOPES
from policies.confidence import Formula
from tests.gateway.conftest import Gateway
from tests.gateway.dashboard.browsing import local, text
from tests.gateway.dashboard.test_playground import play

ASKED = json.dumps({"q": {"type": "noul", "instructions": "Is it urgent?"}})


class Doubting(ScriptedEngine):
    """Vouches for nothing."""

    def read(self, batch: Sequence[Any]) -> Sequence[Mapping[str, Reading]]:
        """As scripted, with a doubt."""
        return [
            {name: replace(one, doubt="not_competent") for name, one in readings.items()}
            for readings in super().read(batch)
        ]


async def test_a_doubt_of_the_only_engine_is_put_into_words(gateway: Gateway) -> None:
    with gateway(engine=Doubting()) as client, local(client):
        page = await play(client, questions=ASKED)

    assert f"scripted: not_competent {DOUBTS['not_competent']}" in text(page)


async def test_times_have_units_and_a_sum_over_threads_says_what_it_is(gateway: Gateway) -> None:
    with gateway() as client, local(client):
        page = await play(client, questions=ASKED)

    times = re.search(r"(\S+ \S+) \(receive ([^)]*)\)", text(page))
    assert times is not None
    every = [times[1], *(one.removeprefix("receive ") for one in times[2].split(", "))]
    assert [one for one in every if not re.search(r"[\d.]+ (µs|ms|s)$", one)] == []


@pytest.mark.parametrize(("engine_ms", "told"), [(3.0, False), (9.0, True)])
def test_an_engine_that_read_longer_than_it_took_had_several_threads(
    engine_ms: float, told: bool
) -> None:
    outcome = Outcome(200, {}, {}, "", 5.0, (("queue", 1.0), ("engine", engine_ms)))

    assert outcome.threads_added_up is told


def test_every_scope_and_formula_has_its_words() -> None:
    assert tuple(SCOPES) == KNOWN_SCOPES
    assert tuple(FORMULAS) == KNOWN_FORMULAS == get_args(Formula)
