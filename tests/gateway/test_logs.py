"""What is written of a request, and what never is."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engines.scripted import ScriptedEngine
from gateway.config_server import LogSection, ServerSection
from gateway.logs import open_log
from gateway.routes import build_app
from tests.gateway.conftest import ASK, Gateway, settings_of

_LOGGERS = ("tiergate", "uvicorn", "opentelemetry", "asyncio", "python_multipart")
Lines = Callable[[], list[str]]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """What stands on standard error since it was last asked, by line."""

    def lines() -> list[str]:
        return capsys.readouterr().err.splitlines()

    yield lines
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.NOTSET)


def log_of(gateway_format: str) -> LogSection:
    return LogSection.model_validate({"format": gateway_format, "access": True})


async def asked(gateway: Gateway, **more: Any) -> int:
    """Send ASK to a gateway with an access log; its status."""
    settings = settings_of(server=ServerSection(trusted_proxies=("127.0.0.1",)), log=more["log"])
    body = {**ASK, **more.get("changes", {})}
    with gateway(settings, more.get("engine")) as client:
        client.headers["x-forwarded-for"] = "203.0.113.9"
        client.headers["x-request-id"] = "mine-7"
        answered = await client.post("/v1/systemone", json=body)
    return answered.status_code


async def test_a_request_is_one_json_line_with_its_numbers(
    gateway: Gateway, written: Lines
) -> None:
    open_log(log := log_of("json"))

    await asked(gateway, log=log)

    (line,) = (json.loads(one) for one in written())
    assert line["message"] == "request"
    assert line["level"] == "info"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line["time"])
    assert (line["method"], line["path"], line["status"]) == ("POST", "/v1/systemone", 200)
    assert line["client"] == "203.0.113.9"
    assert line["request_id"] == "mine-7"
    assert line["key"] == "anonymous"
    assert (line["model"], line["engines"]) == ("scripted-1", "scripted")
    assert (line["questions"], line["tokens"]) == (3, 12)
    stages = ["receive_ms", "decode_ms", "ledger_ms", "queue_ms", "engine_ms", "total_ms"]
    assert [name for name in line if name.endswith("_ms")] == stages
    assert line["ms"] >= line["total_ms"] >= line["engine_ms"] >= 0


async def test_a_refused_request_says_what_for(gateway: Gateway, written: Lines) -> None:
    open_log(log := log_of("json"))

    await asked(gateway, log=log, changes={"model": "none-such"})

    (line,) = (json.loads(one) for one in written())
    assert (line["status"], line["refused"]) == (400, "unknown_model")
    assert "model" not in line


@pytest.mark.parametrize(("level", "paths"), [("info", []), ("debug", ["/health", "/ready"])])
async def test_probes_that_find_all_well_are_logged_only_where_debugging(
    gateway: Gateway, written: Lines, level: str, paths: list[str]
) -> None:
    log = LogSection.model_validate({"format": "json", "access": True, "level": level})
    open_log(log)

    with gateway(settings_of(log=log)) as client:
        for path in ("/health", "/ready"):
            assert (await client.get(path)).status_code == 200
        await client.get("/nothing")

    told = [json.loads(one) for one in written()]
    assert [one["path"] for one in told if one["message"] == "request"] == [*paths, "/nothing"]


async def test_for_people_it_is_one_line_of_text(gateway: Gateway, written: Lines) -> None:
    open_log(log := log_of("text"))

    await asked(gateway, log=log)

    (line,) = written()
    assert "request" in line
    assert "status=200" in line
    assert "\x1b" not in line


@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_bug_is_logged_with_its_traceback_and_without_what_was_sent(
    gateway: Gateway, written: Lines, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("gateway.app.systemone.encode", explode)
    open_log(log := log_of(form))

    status = await asked(gateway, log=log, changes={"state": "zebra crossing"})

    told = "\n".join(written())
    assert status == 500
    assert "RuntimeError: a bug" in told
    assert "mine-7" in told
    assert "zebra" not in told
    assert "Payments" not in told


async def test_a_broken_engine_is_logged_without_what_was_sent(
    gateway: Gateway, written: Lines
) -> None:
    open_log(log := log_of("json"))
    engine = ScriptedEngine(script=lambda *_: [float("nan")] * 2)

    await asked(gateway, log=log, engine=engine, changes={"state": "zebra crossing"})

    told = "\n".join(written())
    assert '"level":"error"' in told
    assert "zebra" not in told


@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_path_cannot_begin_a_line_of_its_own(
    gateway: Gateway, written: Lines, form: str
) -> None:
    open_log(log := log_of(form))
    with gateway(settings_of(log=log)) as client:
        await client.get("/a%0Alevel=error%1b[31mred")

    (line,) = written()
    assert "\x1b" not in line


async def test_fields_that_are_not_ours_are_not_written(written: Lines) -> None:
    open_log(log_of("json"))

    logging.getLogger("tiergate").warning("odd", extra={"state": "zebra", "engine": "e"})

    (line,) = (json.loads(one) for one in written())
    assert set(line) == {"level", "time", "engine", "message"}


@pytest.mark.parametrize("form", ["json", "text"])
def test_where_nobody_takes_events_there_are_none(
    written: Lines, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr("sys.stderr", None)

    open_log(log_of(form))
    logging.getLogger("tiergate").warning("odd")

    monkeypatch.undo()
    assert written() == []


async def test_what_the_event_loop_complains_of_has_the_form_of_the_log(written: Lines) -> None:
    open_log(log_of("json"))

    logging.getLogger("asyncio").error("Task exception was never retrieved")

    (line,) = (json.loads(one) for one in written())
    assert (line["level"], line["message"]) == ("error", "Task exception was never retrieved")


async def test_a_broken_form_is_no_event(
    gateway: Gateway, written: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    open_log(log_of("json"))
    with gateway(settings_of(log=LogSection())) as client:
        form = {"content-type": "multipart/form-data; boundary=edge"}
        answered = await client.post("/v1/systemone", content=b"zebra", headers=form)

    assert answered.status_code == 400
    assert (written(), caplog.messages) == ([], [])


async def test_without_an_access_log_a_request_writes_nothing(
    gateway: Gateway, written: Lines
) -> None:
    open_log(LogSection(format="json"))

    await asked(gateway, log=LogSection(format="json"))

    assert written() == []


def test_the_access_log_can_be_turned_on(gateway: Gateway) -> None:
    from gateway.wiring import new_services

    services = new_services(settings_of())
    build_app(services, access_log=True)

    assert services.journal.access_log
