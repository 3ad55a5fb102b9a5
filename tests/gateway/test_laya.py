"""A gateway in front of a tiny Laya checkpoint: reasons, truncation, languages, the memo."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from engines.contract import Reading
from engines.lane import rows
from engines.laya.engine import LayaEngine
from gateway import wiring, wiring_engines
from gateway.config import ModelSection, Settings
from gateway.config_engines import LayaEngineSection
from gateway.config_server import LogSection
from gateway.logs import open_log
from gateway.routes import build_app
from tests.engines.laya.golden import GOLDENS

pytest.importorskip("onnx")

Opens = Callable[..., AbstractContextManager[httpx.AsyncClient]]

LONG = "the invoice from March was charged twice and nobody answers " * 100
NOUL = {"type": "noul", "instructions": "Is it about money?"}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in ("tiny-english", "tiny-multilingual"):
        shutil.copytree(GOLDENS / name, folder / name)
    return folder


@pytest.fixture
def opens(checkpoints: Path) -> Opens:
    """A context manager: settings of the engine in, a client out."""

    @contextmanager
    def opened(**options: Any) -> Iterator[httpx.AsyncClient]:
        section = LayaEngineSection(kind="laya", path=str(checkpoints / "tiny-english"), **options)
        settings = Settings(
            default_model="laya",
            engines={"laya": section},
            models={"laya": ModelSection(engine="laya")},
        )
        services = wiring.new_services(settings)
        with wiring_engines.open_lanes(settings) as lanes:
            wiring.install(services, settings, lanes)
            app = build_app(services, access_log=False)
            yield httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://gateway.test"
            )

    return opened


def ask(state: Any, question: Any = None, **more: Any) -> dict[str, Any]:
    return {"state": state, "questions": {"q": question or NOUL}, **more}


async def test_what_was_left_out_is_told_where_the_operator_allows_it(opens: Opens) -> None:
    with opens(on_overflow="truncate", language="any") as client:
        response = await client.post("/v1/systemone", json=ask(LONG))

    answer = response.json()["answers"]["q"]
    assert answer["x_reason"] == "truncated"
    assert answer["x_truncated"]["kept"] == 512
    assert answer["x_truncated"]["dropped"] > 500


async def test_otherwise_a_state_that_is_too_long_is_400_with_both_counts(opens: Opens) -> None:
    with opens(language="any") as client:
        response = await client.post("/v1/systemone", json=ask(LONG))

    assert response.status_code == 400
    detail = response.json()["detail"]
    assert detail["error_type"] == "max_tokens_exceeded"
    assert detail["x_max_tokens"] == 512
    assert detail["x_tokens"] > 1000


async def test_options_that_do_not_fit_are_422_with_a_reason_and_the_question(
    opens: Opens,
) -> None:
    criteria = {f"intent {i}": f"a description of the intent number {i}" for i in range(40)}
    with opens(language="any") as client:
        response = await client.post(
            "/v1/systemone", json=ask("s", {"type": "choice", "criteria": criteria})
        )

    fault = response.json()["detail"][0]
    assert response.status_code == 422
    assert fault["loc"] == ["body", "questions", "q"]
    assert fault["ctx"]["reason"] == "options_cut"


GERMAN = "Guten Tag, uns wurde die Rechnung für März zweimal berechnet, bitte erstatten Sie sie."


async def test_a_language_that_nobody_here_reads_is_422_unless_the_caller_knows_better(
    opens: Opens,
) -> None:
    with opens() as client:
        guessed = await client.post("/v1/systemone", json=ask(GERMAN))
        told = await client.post("/v1/systemone", json=ask(GERMAN, x_lang="en"))
        foreign = await client.post("/v1/systemone", json=ask("Please help me", x_lang="de"))

    assert guessed.status_code == foreign.status_code == 422
    assert guessed.json()["detail"][0]["ctx"]["reason"] == "language"
    assert told.status_code == 200


@pytest.mark.parametrize(("memo_bytes", "reads"), [(1_000_000, 2), (0, 4)])
async def test_a_question_is_read_once_unless_the_memo_is_off(
    opens: Opens, monkeypatch: pytest.MonkeyPatch, memo_bytes: int, reads: int
) -> None:
    own, count = LayaEngine.read, 0

    def counting(engine: LayaEngine, batch: Sequence[Any]) -> Sequence[Mapping[str, Reading]]:
        nonlocal count
        count += len(batch)
        return own(engine, batch)

    monkeypatch.setattr(LayaEngine, "read", counting)
    both = {"state": "s", "questions": {"a": NOUL, "b": {**NOUL, "instructions": "Is it late?"}}}
    with opens(language="any", memo_bytes=memo_bytes) as client:
        first = await client.post("/v1/systemone", json=both)
        again = await client.post("/v1/systemone", json=both)

    assert first.json()["answers"] == again.json()["answers"]
    assert count == reads
    tokens = [one.json()["usage"]["input_tokens"] for one in (first, again)]
    assert tokens == [tokens[0], 0 if memo_bytes else tokens[0]]  # who reads pays


def test_a_gpu_gets_batches_and_a_cpu_single_rows() -> None:
    cpu = LayaEngineSection(kind="laya", path="x", workers=3)
    gpu = LayaEngineSection(kind="laya", path="x", device="cuda")

    assert wiring_engines.shape_of(cpu, "cpu").workers == 3
    assert wiring_engines.shape_of(cpu, "cpu").max_batch_tokens == 0
    assert wiring_engines.shape_of(gpu, "cuda").max_batch_tokens > 0


def test_an_engine_that_fell_back_has_as_many_readers_as_the_cpu_allows() -> None:
    wanted = LayaEngineSection(kind="laya", path="x", device="cuda", workers=3)

    assert wiring_engines.shape_of(wanted, "cpu") == rows(3)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_missing_package_is_told_with_the_extra_of_the_device(
    monkeypatch: pytest.MonkeyPatch, device: Literal["cpu", "cuda"]
) -> None:
    def lacking(**_: object) -> None:
        raise ImportError(name="onnxruntime")

    monkeypatch.setattr(wiring_engines, "engine_class", lambda _: lacking)
    section = LayaEngineSection(kind="laya", path="x", device=device)

    with pytest.raises(wiring_engines.CannotStart, match=rf"pip install '\.\[{device},laya\]'$"):
        wiring_engines.open_engine("laya", section)


def test_the_first_import_is_logged_in_the_configured_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shutil.copytree(GOLDENS / "tiny-english", tmp_path / "tiny")
    section = LayaEngineSection(kind="laya", path=str(path), language="any")
    loggers = [logging.getLogger(name) for name in ("tiergate", "uvicorn")]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    try:
        open_log(LogSection(format="json"))
        wiring_engines.open_engine("laya", section).close()
    finally:
        for each, (handlers, propagate, level) in zip(loggers, before, strict=True):
            each.handlers, each.propagate = handlers, propagate
            each.setLevel(level)

    event = json.loads(capsys.readouterr().err)
    assert event["message"] == "importing tiny as fp32"


def test_a_tournament_needs_groups_of_at_least_two() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        LayaEngineSection(kind="laya", path="x", tournament=1)


def test_a_checkpoint_that_is_not_there_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    section = LayaEngineSection(kind="laya", path=str(tmp_path / "missing"))

    with pytest.raises(wiring_engines.CannotStart, match=r"rl_agent_config\.json"):
        wiring_engines.open_engine("laya", section)
