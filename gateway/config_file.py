"""From a file to settings: where each value came from, and which line is to blame.

Bearer keys are `"${VARIABLE}"` or `"${file:PATH}"` references, resolved here and nowhere else, and
never shown.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr, ValidationError

from gateway.config import Settings
from gateway.documents import ENDLESS, endless_number, toml_tree
from gateway.lines import Key, line_of, toml_lines
from gateway.text_file import text_of

_REFERENCE = re.compile(r"\$\{(?:file:(?P<file>.+)|(?P<variable>[A-Za-z_][A-Za-z0-9_]*))\}")


NOT_SET = "not set"


class ConfigError(Exception):
    """The configuration cannot be used. The message names the file, the line and the key."""


@dataclass(frozen=True, slots=True)
class Value:
    """One effective setting, for display."""

    key: str
    """Dotted, e.g. `server.port`."""
    shown: str
    """As TOML; secrets as `"********"`; `NOT_SET` for what TOML cannot say."""
    origin: str
    """`default`, or `FILE:LINE`."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings and where they came from."""

    settings: Settings
    path: Path | None
    """`None` = built-in defaults only."""
    lines: Mapping[Key, int]
    """Line of each key and table header in the file, from 1."""

    def values(self) -> list[Value]:
        """Every setting, in the order of the reference, with its origin."""
        return list(self._values(self.settings, ()))

    def _values(self, node: object, key: Key) -> Iterator[Value]:
        if isinstance(node, BaseModel):
            for name in type(node).model_fields:
                yield from self._values(getattr(node, name), (*key, name))
        elif isinstance(node, dict):
            for name, child in node.items():
                yield from self._values(child, (*key, name))
        else:
            shown = NOT_SET if node is None else toml(node)
            yield Value(_dotted(key), shown, self._origin(key))

    def _origin(self, key: Key) -> str:
        line = self.lines.get(key)
        return "default" if line is None or self.path is None else f"{self.path}:{line}"


def configuration_path(named: str | None) -> Path | None:
    """The file to read: `named`, else `$TIERGATE_CONFIG`, else `./config.toml` if it is there.

    Raises:
        ConfigError: `named` is empty, as where a shell's variable is; the defaults have no keys.
    """
    if named == "":
        raise ConfigError("--config names no file")
    if chosen := named or os.environ.get("TIERGATE_CONFIG"):
        return Path(chosen)
    here = Path("config.toml")
    return here if here.is_file() else None


def load(path: Path | None) -> Configuration:
    """The settings in `path`, or the built-in defaults.

    Raises:
        ConfigError: no such file, not TOML, an unknown key, a bad value, an unset variable.
    """
    if path is None:
        return Configuration(Settings(), None, {})
    tree, lines = _parsed(path)
    _resolve_keys(tree, path, lines)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("\n".join(_faults(error, path, lines))) from None
    return Configuration(settings, path, lines)


def load_address(path: Path | None) -> tuple[str, int]:
    """`server.host` and `server.port` as `path` has them, whatever else it says.

    Raises:
        ConfigError: no such file, not TOML.
    """
    tree: dict[str, Any] = {} if path is None else _parsed(path)[0]
    found = tree.get("server")
    server = found if isinstance(found, dict) else {}
    default = Settings().server
    host, port = server.get("host"), server.get("port")
    return (
        host if isinstance(host, str) else default.host,
        port if isinstance(port, int) else default.port,
    )


def _parsed(path: Path) -> tuple[dict[str, Any], dict[Key, int]]:
    """The file's tables, and the line of each key."""
    try:
        text = text_of(path)
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    try:
        tree, lines = toml_tree(text), toml_lines(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    if (key := endless_number(tree)) is not None:
        raise ConfigError(f"{_place(key, path, lines)}: {ENDLESS}")
    return tree, lines


def _resolve_keys(tree: dict[str, Any], path: Path, lines: Mapping[Key, int]) -> None:
    """Put the values of environment variables and files where the tables of `[auth]` refer to them.

    Only there: a value elsewhere would be shown by `tiergate check` or to clients.
    """
    auth = tree.get("auth")
    if not isinstance(auth, dict):
        return
    for table in ("keys", "metrics_keys"):
        keys = auth.get(table)
        if isinstance(keys, dict):  # otherwise validation will say what it should be
            _resolve(keys, ("auth", table), path, lines)


def _resolve(keys: dict[str, Any], table: Key, path: Path, lines: Mapping[Key, int]) -> None:
    for name, value in keys.items():
        if not isinstance(value, str):
            continue
        place = _place((*table, name), path, lines)
        reference = _REFERENCE.fullmatch(value)
        if reference is None:
            raise ConfigError(
                f"{place}: a key must not stand in the file; "
                f'put it in an environment variable and write "${{VARIABLE}}" here, '
                f'or in a file of its own and write "${{file:PATH}}"'
            )
        keys[name] = _referred(reference, place)


def _referred(reference: re.Match[str], place: str) -> str:
    """What a reference stands for."""
    if name := reference["variable"]:
        if not (found := os.environ.get(name)):
            raise ConfigError(f"{place}: the environment variable {name} is not set")
        return found
    try:
        found = text_of(Path(reference["file"])).strip()
    except ValueError as error:
        sentence = f"the file {reference['file']} cannot be read: {error}"
        raise ConfigError(f"{place}: {sentence}") from None
    if not found:
        raise ConfigError(f"{place}: the file {reference['file']} is empty")
    return found


def _faults(error: ValidationError, path: Path, lines: Mapping[Key, int]) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        key = tuple(str(part) for part in fault["loc"])
        if key[:1] == ("engines",) and len(key) > 3:  # the union's tag stands in the location
            key = (*key[:2], *key[3:])
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            message = f"there is no such setting{_did_you_mean(key)}"
        begins_with = tuple(message.partition(" ")[0].split("."))
        if begins_with[: len(key)] == key and (line := line_of(begins_with, lines)):
            yield f"{path}:{line}: {message}"  # of a validator that sees more than one setting
        else:
            yield f"{_place(key, path, lines)}: {message}"


def _place(key: Key, path: Path, lines: Mapping[Key, int]) -> str:
    """`FILE:LINE: key`, with the line of the nearest key above that stands in the file."""
    if line := line_of(key, lines):
        return f"{path}:{line}: {_dotted(key)}"
    return f"{path}: {_dotted(key)}" if key else str(path)


def _did_you_mean(key: Key) -> str:
    near = difflib.get_close_matches(key[-1], known_names(key[:-1]), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def known_names(table: Key) -> list[str]:
    """Names of the settings that may stand in a table, e.g. in `("server",)`."""
    models: list[type[BaseModel]] = [Settings]
    for part in table:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if fields:  # otherwise the part is a name that the operator chose, as in [engines.NAME]
            models = [found for field in fields for found in _models_in(field.annotation)]
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _dotted(key: Key) -> str:
    bare = re.compile(r"[A-Za-z0-9_-]+")
    return ".".join(part if bare.fullmatch(part) else f'"{part}"' for part in key)


def toml(value: object) -> str:
    """The value as it would stand in a file; secrets as stars."""
    match value:
        case SecretStr():
            return '"********"'
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case BaseModel():
            return toml({name: one for name, one in value if one is not None})
        case dict():
            return "{" + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + "}"
        case tuple() | list():
            return "[" + ", ".join(toml(item) for item in value) + "]"
        case _:
            return str(value)
