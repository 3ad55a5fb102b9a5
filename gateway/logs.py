"""Events on standard error, as text or JSON lines. Never content, never a key."""

import logging
import sys
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, Processor

from gateway.config_server import LogSection
from gateway.passage import STAGES

_OWN = (
    *("request_id", "method", "path", "status", "ms", "client", "key", "refused", "why", "model"),
    *("engine", "engines", "questions", "tokens", *(f"{stage}_ms" for stage in STAGES)),
    *("config", "reloaded", "kept", "version", "for_s", "in_progress"),
)
"""Fields of an event that are written, in this order; whatever else a record holds is not."""


_OTHERS = ("uvicorn", "opentelemetry", "asyncio")
"""Whose events are written too, from warnings on."""
_TALKERS = ("python_multipart",)
"""Who tells of every broken body, and what stood in it."""


def open_log(section: LogSection) -> None:
    """Send events of this project and of what it stands on to standard error, as configured."""
    handler: logging.Handler = logging.NullHandler()
    if sys.stderr is not None:  # as it is where whoever started the process has closed it
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_formatter(section))
    level = section.level.upper()
    for name in ("tiergate", *_OTHERS):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
    for name in _OTHERS:
        logging.getLogger(name).setLevel("WARNING" if section.level == "info" else level)
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _formatter(section: LogSection) -> logging.Formatter:
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")
    shape: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if section.format == "json":
        shape += [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(serializer=_json),
        ]
    else:
        shape.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                pad_event_to=0,
                sort_keys=False,
                timestamp_key="time",
                # The pretty one prints local variables, and with them what callers sent.
                exception_formatter=structlog.dev.plain_traceback,
            )
        )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_level, stamp, _fields], processors=shape
    )


def _level(_: Any, __: str, event: EventDict) -> EventDict:
    event["level"] = event["_record"].levelname.lower()
    return event


def _fields(_: Any, __: str, event: EventDict) -> EventDict:
    """Add what the caller of the logger gave as `extra`, of the fields that we own."""
    record = event["_record"].__dict__
    event.update({name: record[name] for name in _OWN if name in record})
    return event


def _json(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event).decode()
