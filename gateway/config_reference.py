"""The configuration reference as Markdown, from the settings' own docstrings."""

import inspect
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.config import (
    AuthSection,
    ModelSection,
    Settings,
)
from gateway.config_cascade import CascadeSection, GateSection
from gateway.config_clef import ClefEngineSection
from gateway.config_dashboard import DashboardSection
from gateway.config_engines import (
    FittedEngineSection,
    LayaEngineSection,
    ScriptedEngineSection,
    StarterEngineSection,
)
from gateway.config_file import toml
from gateway.config_ledger import LedgerSection
from gateway.config_limits import LimitsSection
from gateway.config_prices import MachineSection, PricesSection, PricingSection, TariffSection
from gateway.config_server import LogSection, ServerSection, TracesSection
from gateway.config_watch import WatchSection

SECTIONS: dict[str, type[BaseModel]] = {
    "server": ServerSection,
    "limits": LimitsSection,
    "auth": AuthSection,
    "cascade": CascadeSection,
    "cascade.gates.NAME": GateSection,
    "ledger": LedgerSection,
    "watch": WatchSection,
    "log": LogSection,
    "traces": TracesSection,
    "dashboard": DashboardSection,
    "engines.NAME, kind starter": StarterEngineSection,
    "engines.NAME, kind fitted": FittedEngineSection,
    "engines.NAME, kind laya": LayaEngineSection,
    "engines.NAME, kind clef": ClefEngineSection,
    "engines.NAME, kind scripted": ScriptedEngineSection,
    "models.NAME": ModelSection,
    "prices": PricesSection,
    "prices.engines.NAME, or prices.hosted.NAME": TariffSection,
    "prices.machines.NAME": MachineSection,
    "pricing": PricingSection,
}
"""Heading → section, in the order of the page."""

_HEAD = """\
# Configuration

One TOML file holds everything. `tiergate` reads the file named by `--config`, else by the
environment variable `TIERGATE_CONFIG`, else `./config.toml` if there is one, else it runs on the
defaults below: one engine `starter`, one model `starter` with the hosted API's names as aliases.
An `[engines.NAME]` or `[models.NAME]` table in the file replaces all of its kind. The `config.toml`
that comes with the project says every setting of that default. Paths are relative to the directory
that `tiergate` is started in.

- An unknown key, a wrong type or a value out of range stops the start with exit code 2 and a
  sentence that names the file, the line and the key.
- A bearer key is written as `"${VARIABLE}"` and read from the environment, or as `"${file:PATH}"`
  and read from that file; if there is none, the start stops. Nothing else is read from the
  environment. The environment of a process does not change: a key that `tiergate reload` is to
  exchange stands in a file.
- `tiergate check` shows every value in force and where it comes from. Like a start it reads the
  files that `[cascade]` names, and refuses a broken one with its line and key, before it loads an
  engine; `--no-load` loads none.
- Configuration, policies, calibrations and key files are files: a directory, a named pipe or a
  device is refused.

<!-- Written by scripts/reference from the docstrings in gateway/config.py. -->
"""


def reference() -> str:
    """The whole page."""
    lines = [_HEAD, "## Top level", "", *_table(Settings, only_plain=True)]
    for heading, section in SECTIONS.items():
        about = inspect.cleandoc(section.__doc__ or "")
        lines += ["", f"## `[{heading.partition(',')[0]}]`{heading.partition(',')[2]}", ""]
        lines += [about, "", *_table(section)]
    return "\n".join(lines) + "\n"


def _table(section: type[BaseModel], *, only_plain: bool = False) -> Iterator[str]:
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    for name, field in section.model_fields.items():
        if only_plain and not isinstance(field.default, str):
            continue
        yield f"| `{name}` | {_default(field)} | {' '.join((field.description or '').split())} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return "not set" if field.default is None else f"`{toml(field.default)}`"
