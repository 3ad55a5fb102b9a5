"""`tiergate ask`: answer questions from files, in this process or through a running gateway."""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from engines.contract import EngineError
from gateway.cli.grammar import ENVIRONMENT, OK, USAGE, Commands, add_config, add_json, add_url
from gateway.cli.http import encoded, exchange, refusal_of
from gateway.cli.screen import screen
from gateway.cli.waiting import told_when_slow
from gateway.config_file import ConfigError, configuration_path, load
from gateway.decide import decide
from gateway.dialects import systemone
from gateway.documents import json_tree
from gateway.errors import Refusal, problem
from gateway.plan import Means
from gateway.text_file import text_of
from gateway.wiring import install, new_services, only_model
from gateway.wiring_engines import open_lanes

_BAR_CELLS = 24
_WIDE_COLUMNS = 100


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("ask", help="answer questions from files")
    state = command.add_mutually_exclusive_group(required=True)
    state.add_argument("-f", "--file", metavar="FILE", help="the state: JSON or text; - = stdin")
    state.add_argument("-s", "--state", metavar="TEXT", help="the state, as text")
    command.add_argument(
        "-q", "--questions", metavar="FILE", required=True, help="JSON: question id → question"
    )
    command.add_argument("-m", "--model", help="default: the configuration's default model")
    add_config(command)
    add_url(command)
    add_json(command)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the answers; 2 when the request is refused, 4 when it cannot be answered."""
    state = read_state(chosen.file) if chosen.state is None else chosen.state
    body: dict[str, Any] = {"state": state, "questions": read_questions(chosen.questions)}
    if chosen.model is not None:
        body["model"] = chosen.model
    if chosen.url:
        status, answer = exchange(chosen.url, systemone.PATH, chosen.key_env, body)
    else:
        status, answer = _here(chosen, body)
    if status != 200:
        print(f"tiergate: {refusal_of(answer)}", file=sys.stderr)
        if chosen.json:
            print(json.dumps(answer, ensure_ascii=False))
        return USAGE if status < 500 else ENVIRONMENT
    if chosen.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        _show(answer)
    return OK


def _here(chosen: argparse.Namespace, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and body as the gateway would send them, without a gateway."""
    settings = only_model(load(configuration_path(chosen.config)).settings, chosen.model)
    services = new_services(settings)
    sent = encoded(body)
    try:
        model, inquiry = systemone.decode(sent, None, services.ask)
        with told_when_slow() as told, open_lanes(settings, told) as lanes:
            install(services, settings, lanes)
            decided = decide(inquiry, services.plan(model), Means(settings.server.deadline_s))
            return 200, json.loads(systemone.encode(asyncio.run(decided)))
    except (Refusal, EngineError) as error:
        found = problem(error)
        return found.status, json.loads(systemone.encode_problem(found))


def read_state(path: str) -> Any:
    """The state in a file; what parses to an object, array or string is taken as JSON.

    Raises:
        ConfigError: the file cannot be read.
    """
    text = _text(path)
    try:
        parsed = json_tree(text)
    except ValueError:
        return text
    return parsed if isinstance(parsed, str | dict | list) else text


def read_questions(path: str) -> Any:
    """The questions in a JSON file, alone or under `questions`; not validated yet.

    Raises:
        ConfigError: the file cannot be read, or is not JSON.
    """
    try:
        parsed = json_tree(_text(path))
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    if isinstance(parsed, dict) and isinstance(parsed.get("questions"), dict):
        return parsed["questions"]
    return parsed


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else text_of(Path(path), streams=True)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot be read: it is not UTF-8 text") from None
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _show(answer: Any) -> None:
    """A table with a bar for each probability."""
    console = screen()
    table = Table(title=f"{answer['model']}, {answer['usage']['input_tokens']} tokens")
    for heading in ("question", "answer", "confidence", "label"):
        table.add_column(heading, overflow="fold")
    table.add_column("probability", no_wrap=True)
    cells = _BAR_CELLS if console.width >= _WIDE_COLUMNS else _BAR_CELLS // 2
    for name, one in answer["answers"].items():
        for row, (label, p) in enumerate(_labels(one)):
            first = row == 0
            table.add_row(
                name if first else "",
                _verdict(one) if first else "",
                f"{one['confidence']:.3f}" if first and "confidence" in one else "",
                label,
                f"{p:.4f} {'█' * round(p * cells)}",
            )
        table.add_section()
    console.print(table)


def _labels(one: Any) -> list[tuple[str, float]]:
    match one["type"]:
        case "noul":
            return [("yes", one["noul"]), ("no", 1 - one["noul"])]
        case "score":
            return [(f"{i} {one['legend'][i]}", p) for i, p in one["probabilities"].items()]
        case _:
            return list(one["probabilities"].items())


def _verdict(one: Any) -> str:
    match one["type"]:
        case "noul":
            verdict = "yes" if one["noul"] >= 0.5 else "no"
        case "score":
            verdict = f"{one['score']:.2f}"
        case _:
            verdict = one["choice"]
    if "x_tier" in one:
        return f"{verdict} ({one['x_engine']}: {one['x_reason']})"
    return f"{verdict} ({one['x_reason']})" if "x_reason" in one else str(verdict)
