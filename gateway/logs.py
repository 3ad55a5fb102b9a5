"""Events on standard error, as text or JSON lines. Never content, never a key."""

import json
import logging
import sys
import time

from gateway.config import LogSection

_OWN = ("event", "request_id", "method", "path", "status", "ms", "key", "model", "engine")


class _Text(logging.Formatter):
    """`time level message key=value …`"""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        extras = "".join(f" {name}={value}" for name, value in _extras(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()}{extras}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class _Json(logging.Formatter):
    """One JSON object per event."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: record.__dict__[name] for name in _OWN if name in record.__dict__}


def open_log(section: LogSection) -> None:
    """Send this project's and uvicorn's events to standard error in the configured form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if section.format == "json" else _Text())
    level = section.level.upper()
    for name in ("tiergate", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
    logging.getLogger("uvicorn").setLevel("WARNING" if section.level == "info" else level)
