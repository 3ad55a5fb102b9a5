"""`tiergate engine plan clef-flash`: the arithmetic of memory, and what fits on a card."""

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gateway.cli.grammar import FINDING, OK, Commands, add_json
from gateway.cli.screen import screen
from gateway.cli.whole import print_whole
from gateway.config_clef import ClefEngineSection

if TYPE_CHECKING:
    from engines.clef.room import Fit

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "MIB": 1 << 20, "GIB": 1 << 30}
_ROWS = {
    "decoder_bytes": "decoder's weights",
    "tables_bytes": "embeddings and output rows",
    "head_bytes": "head",
    "tower_bytes": "vision tower",
    "keys_bytes": "keys, values and the head's memory of one prompt, old and new",
    "states_bytes": "states of one prompt, old and new",
    "chunk_bytes": "to compute one chunk, at most about",
    "runtime_bytes": "CUDA itself, about",
}


def add_to(actions: Commands) -> None:
    """Add the action's grammar."""
    action = actions.add_parser("plan", help="what a model needs on a card, and what fits")
    action.add_argument("engine", choices=("clef-flash",))
    action.add_argument("--gpu", type=_bytes, metavar="24GB", required=True, help="memory it has")
    action.add_argument(
        "--max-tokens", type=_of("max_tokens"), default=16_384, metavar="N", help="longest prompt"
    )
    action.add_argument(
        "--chunk-tokens", type=_of("chunk_tokens"), default=2048, metavar="N", help="read at once"
    )
    action.add_argument(
        "--images", type=_of("max_images"), default=4, metavar="N", help="0 = no vision tower"
    )
    action.add_argument("--tables", choices=("device", "host"), default="device")
    add_json(action)
    action.set_defaults(act=_plan)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]I?B)?", text.upper())
    if found is None or (found[2] or "") not in _UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; give 24GB or 24GiB")
    return int(float(found[1]) * _UNITS[found[2] or ""])


def _of(setting: str) -> Callable[[str], int]:
    """A number within the bounds of that setting of an engine."""

    def number(text: str) -> int:
        try:
            section = ClefEngineSection.model_validate(
                {"kind": "clef", "path": "-", setting: int(text)}
            )
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"'{text}' is no value of {setting}; see docs/configuration.md"
            ) from error
        found: int = getattr(section, setting)
        return found

    return number


def _plan(chosen: argparse.Namespace) -> int:
    """Print the plan; 1 when nothing fits."""
    from engines.clef.room import fits
    from engines.clef.settings import ClefSettings

    settings = ClefSettings(
        Path("clef-flash"),
        max_tokens=chosen.max_tokens,
        chunk_tokens=chosen.chunk_tokens,
        max_images=chosen.images,
        tables=chosen.tables,
    )
    found = fits(settings, chosen.gpu)
    if chosen.json:
        print(json.dumps([_line(one) for one in found]))
    else:
        _show(found, chosen.gpu, chosen.max_tokens)
    return OK if any(one.left_bytes >= 0 for one in found) else FINDING


def _line(fit: "Fit") -> dict[str, Any]:
    return {
        "precision": fit.precision,
        "fits": fit.left_bytes >= 0,
        "need": asdict(fit.need),
        "left_bytes": fit.left_bytes,
        "room": asdict(fit.room),
        "cached_states_of_4000_tokens": fit.cached_states,
    }


def _show(found: "list[Fit]", card_bytes: int, max_tokens: int) -> None:
    table = Table("GB", *(one.precision for one in found))
    for name, label in _ROWS.items():
        table.add_row(label, *(_gb(getattr(one.need, name)) for one in found))
    table.add_section()
    table.add_row("together", *(_gb(one.need.least_bytes) for one in found))
    table.add_row(f"left of {_gb(card_bytes)}", *(_gb(one.left_bytes) for one in found))
    table.add_row(
        "prompts of that length fit", *("yes" if one.left_bytes >= 0 else "no" for one in found)
    )
    table.add_row("tokens computed at once", *(_of_room(one, "batch_tokens") for one in found))
    table.add_row("recorded at once", *(_of_room(one, "graph_tokens") for one in found))
    table.add_row(
        "states of 4,000 tokens the rest remembers", *(str(one.cached_states) for one in found)
    )
    console = screen()
    console.print(f"Clef-flash with prompts of up to {max_tokens:,} tokens; not measured on a GPU")
    print_whole(table)
    if not any(one.left_bytes >= 0 for one in found):
        console.print("nothing fits; try --tables host, --images 0, or fewer tokens")


def _of_room(fit: "Fit", name: str) -> str:
    return f"{getattr(fit.room, name):,}" if fit.left_bytes >= 0 else "-"


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f}"
