"""Two gateways on one ledger: a budget is one budget, whoever is asked."""

import asyncio
from pathlib import Path
from typing import Any

import httpx

from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings

PATH = "/v1/systemone"
BUDGET = 3000


def words(n: int) -> dict[str, Any]:
    """A request that the scripted engine reads in `n` tokens."""
    question = {"type": "noul", "instructions": "?"}
    return {"state": " ".join(["w"] * n), "questions": {"q": question}}


async def test_both_together_never_answer_above_the_budget(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=BUDGET)
    with gateway(settings) as one, gateway(settings) as other:

        async def keep_asking(client: httpx.AsyncClient, n: int) -> int:
            """Tokens that were answered before the first refusal."""
            told = 0
            while (answer := await client.post(PATH, json=words(n), headers=key)).is_success:
                told += answer.json()["usage"]["input_tokens"]
            assert answer.status_code == 429
            return told

        asked = [keep_asking(client, n) for client in (one, other) for n in (7, 20, 50)]
        told = sum(await asyncio.gather(*asked))

    assert told == sum(charge["tokens"] for charge in charged(settings))
    assert told <= BUDGET
    assert told > BUDGET / 2
