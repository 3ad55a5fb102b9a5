"""A gateway in front of a tiny Clef checkpoint: refusals, images, the memo, rest and loss."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from engines.clef.engine import ClefEngine
from engines.clef.prompt import Prompt
from engines.clef.reader import Logits, Reader
from engines.contract import Reading
from gateway import wiring, wiring_engines
from gateway.routes import build_app
from tests.engines.clef.golden import GOLDENS, refusals
from tests.engines.lanes import until

from .clefs import section, settings_of

NOUL = {"type": "noul", "instructions": "Is it about money?"}
LONG = "the invoice from March was charged twice and nobody answers " * 100


@dataclass(frozen=True)
class Opened:
    """A client, and what answers it."""

    client: httpx.AsyncClient
    lanes: Mapping[str, Any]

    @property
    def engine(self) -> ClefEngine:
        engine: ClefEngine = self.lanes["clef"].engine
        return engine

    async def ask(self, state: Any, *questions: Any, **more: Any) -> httpx.Response:
        asked = {f"q{i}": question for i, question in enumerate(questions or (NOUL,))}
        body = {"state": state, "questions": asked, **more}
        return await self.client.post("/v1/systemone", json=body)


Opens = Callable[..., AbstractContextManager[Opened]]


@pytest.fixture
def opens() -> Opens:
    """A context manager: settings of the engine in, a client out."""

    @contextmanager
    def opened(**options: Any) -> Iterator[Opened]:
        settings = settings_of(section(**options))
        services = wiring.new_services(settings)
        with wiring_engines.open_lanes(settings) as lanes:
            wiring.install(services, settings, lanes)
            app = build_app(services, access_log=False)
            transport = httpx.ASGITransport(app)
            yield Opened(
                httpx.AsyncClient(transport=transport, base_url="http://gateway.test"), lanes
            )

    return opened


async def test_a_state_that_is_too_long_is_400_with_both_counts(opens: Opens) -> None:
    with opens(max_tokens=512) as gateway:
        response = await gateway.ask(LONG)

    detail = response.json()["detail"]
    assert response.status_code == 400
    assert detail["error_type"] == "max_tokens_exceeded"
    assert detail["x_max_tokens"] == 512
    assert detail["x_tokens"] > 1000


async def test_what_was_left_out_is_told_where_the_operator_allows_it(opens: Opens) -> None:
    with opens(max_tokens=512, on_overflow="truncate") as gateway:
        response = await gateway.ask(LONG)

    answer = response.json()["answers"]["q0"]
    assert answer["x_reason"] == "truncated"
    assert answer["x_truncated"]["kept"] == 512
    assert answer["x_truncated"]["dropped"] > 500


async def test_images_are_seen_and_others_refused(opens: Opens) -> None:
    content = (GOLDENS / "images/img0.png").read_bytes()

    def assets(data: bytes) -> dict[str, Any]:
        return {"<image:1>": {"data_base64": base64.b64encode(data).decode()}}

    with opens() as gateway:
        plain = await gateway.ask("look: <image:1>")
        shown = await gateway.ask("look: <image:1>", assets=assets(content))
        broken = await gateway.ask("look: <image:1>", assets=assets(content[:60]))

    assert shown.status_code == 200
    assert shown.json()["answers"] != plain.json()["answers"]
    assert shown.json()["usage"]["input_tokens"] == plain.json()["usage"]["input_tokens"] + 18
    assert broken.status_code == 422
    assert "image" in broken.text


OURS = {"missing_model": "answered by the default model", "images_http_string": "no such key"}
"""What the reference refuses and the System One API does not: its words are others."""


@pytest.mark.parametrize("case", refusals(), ids=lambda case: case["name"])
async def test_what_the_reference_refuses_is_a_4xx_here(opens: Opens, case: dict[str, Any]) -> None:
    limit = case["opts"].get("max_length", 16_384)
    with opens(max_tokens=max(limit, 128)) as gateway:
        response = await gateway.client.post(
            "/v1/systemone", json={**case["request"], "model": "clef"}
        )

    if case["name"] in OURS:
        assert response.status_code == 200
    else:
        assert 400 <= response.status_code < 500
        assert response.json()["detail"]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that are read."""
    own, sizes = ClefEngine.read, []

    def counting(engine: ClefEngine, batch: Sequence[Any]) -> Sequence[Mapping[str, Reading]]:
        sizes.append(len(batch))
        return own(engine, batch)

    monkeypatch.setattr(ClefEngine, "read", counting)
    return sizes


async def test_isolated_questions_are_remembered_one_by_one(opens: Opens, reads: list[int]) -> None:
    other = {**NOUL, "instructions": "Is it late?"}
    with opens() as gateway:
        first = await gateway.ask("a state", NOUL, other)
        again = await gateway.ask("a state", other)

    assert sum(reads) == 2
    assert again.json()["answers"]["q0"] == first.json()["answers"]["q1"]


async def test_joint_questions_are_read_every_time(opens: Opens, reads: list[int]) -> None:
    with opens(reading="joint") as gateway:
        first = await gateway.ask("a state")
        again = await gateway.ask("a state")

    assert first.json()["answers"] == again.json()["answers"]
    assert reads == [1, 1]


async def test_an_engine_at_rest_is_503_with_a_hint_and_then_answers(opens: Opens) -> None:
    with opens(keep_alive_s=3600.0) as gateway:
        keeper = gateway.engine._keeper
        keeper._used_s -= 3600.0
        assert keeper.rest_if_idle()
        resting = await gateway.client.get("/ready")

        refused = await gateway.ask("a state")
        await until(lambda: keeper.state == "ready")
        answered = await gateway.ask("a state")

    assert resting.json()["engines"]["clef"]["state"] == "resting"
    assert refused.status_code == 503
    assert 0 < int(refused.headers["retry-after-ms"]) <= 10_000
    assert answered.status_code == 200


async def test_weights_that_are_not_finite_are_500_and_counted(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Reader.logits

    def poisoned(reader: Reader, prompts: Sequence[Prompt]) -> list[Logits]:
        plain = own(reader, prompts)
        bad = [
            ((float("nan"),) * 2,) if 9 in one.schema else ours
            for one, ours in zip(prompts, plain, strict=True)
        ]
        return bad

    monkeypatch.setattr(Reader, "logits", poisoned)
    with opens() as gateway:
        marked = {**NOUL, "instructions": chr(ord("!") + 9) * 2}
        bad = await gateway.ask("a state", marked)
        good = await gateway.ask("a state")
        ready = await gateway.client.get("/ready")

    assert bad.status_code == 500
    assert good.status_code == 200
    assert ready.json()["engines"]["clef"]["counts"]["not finite"] == 1


async def test_a_lost_device_is_not_ready(opens: Opens) -> None:
    with opens() as gateway:
        gateway.engine._keeper.lose()
        ready = await gateway.client.get("/ready")
        asked = await gateway.ask("a state")

    assert ready.status_code == 503
    assert ready.json()["status"] == "lost"
    assert asked.status_code == 500
