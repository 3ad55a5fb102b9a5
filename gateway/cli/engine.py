"""`tiergate engine import | pull | verify`: get a model ready before it is served."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from engines.laya.verify import Finding

from gateway.cli.grammar import ENVIRONMENT, FINDING, OK, Commands, add_json
from gateway.config import Settings

_ENGINES = ("laya",)
_PINNED = ("laya", "laya-multilingual", "laya-typed-decisions")


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("engine", help="import, pull or verify a model's weights")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_import(actions)
    _add_pull(actions)
    _add_verify(actions)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Do what was chosen; 1 when verification fails, 4 when weights or packages are missing."""
    from engines.laya.tensors import CheckpointError

    try:
        code: int = chosen.act(chosen)
    except CheckpointError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    except ImportError as error:
        print(
            f"tiergate: this needs the package '{error.name}'; "
            "install the extra: pip install 'tiergate[cpu,laya]' "
            "('tiergate[cuda,laya]' for a GPU)",
            file=sys.stderr,
        )
        return ENVIRONMENT
    return code


def _add_import(actions: Commands) -> None:
    action = actions.add_parser("import", help="build the graph that is served from the weights")
    action.add_argument("engine", choices=_ENGINES)
    action.add_argument(
        "source", metavar="PATH|HUB_ID", help="checkpoint directory, or where to pull"
    )
    action.add_argument("--precision", choices=("fp32", "int8"), default="fp32")
    action.add_argument("--sha256", metavar="HEX", help="what model.safetensors must hash to")
    _add_hub(action)
    action.set_defaults(act=_import)


def _add_pull(actions: Commands) -> None:
    action = actions.add_parser("pull", help="fetch a checkpoint from the Hugging Face hub")
    action.add_argument("source", metavar="NAME", help=f"{', '.join(_PINNED)}, or OWNER/NAME")
    _add_hub(action)
    action.set_defaults(act=_pull)


def _add_verify(actions: Commands) -> None:
    action = actions.add_parser("verify", help="check weights against golden requests")
    action.add_argument("engine", choices=_ENGINES)
    action.add_argument("path", metavar="PATH", type=Path, help="checkpoint directory")
    action.add_argument(
        "--max-delta", type=float, help="fail if an int8 probability is further than this from fp32"
    )
    add_json(action)
    action.set_defaults(act=_verify)


def _add_hub(action: argparse.ArgumentParser) -> None:
    action.add_argument("--revision", metavar="COMMIT", help="default: the reviewed one")
    action.add_argument("--into", metavar="DIR", type=Path, help="default: ./models/NAME")


def _import(chosen: argparse.Namespace) -> int:
    from engines.laya.artifact import imported
    from engines.laya.checkpoint import load

    path = Path(chosen.source)
    if not path.is_dir() and not path.is_absolute() and chosen.source.count("/") <= 1:
        path = _pulled(chosen)
    checkpoint = load(path)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"importing {path.name} as {chosen.precision}", total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        made = imported(checkpoint, chosen.precision, sha256=chosen.sha256, progress=told)
    print(f"imported: {made.graph.parent}")
    print(f"source sha256: {made.manifest.source_sha256}")
    _tell_section(path, chosen.precision)
    return OK


def _tell_section(path: Path, precision: str) -> None:
    aliases = json.dumps(list(Settings().models["starter"].aliases))
    print("\nserve it with this config.toml:\n")
    print('default_model = "laya"\n')
    print(f'[engines.laya]\nkind = "laya"\npath = {json.dumps(str(path.resolve()))}')
    print(f'precision = "{precision}"\n\n[models.laya]\nengine = "laya"\naliases = {aliases}')
    print("\n# In a file that has other models, take these aliases and default_model from them.")


def _pull(chosen: argparse.Namespace) -> int:
    print(f"pulled: {_pulled(chosen)}")
    return OK


def _pulled(chosen: argparse.Namespace) -> Path:
    from engines.laya import pull

    source = pull.source_of(chosen.source, chosen.revision)
    into = chosen.into or Path("models") / chosen.source.rsplit("/", 1)[-1]
    into.parent.mkdir(parents=True, exist_ok=True)
    return pull.pulled(source, into, endpoint=os.environ.get("HF_ENDPOINT"))


def _verify(chosen: argparse.Namespace) -> int:
    from engines.laya import verify

    found = list(verify.findings(chosen.path, max_delta=chosen.max_delta))
    if chosen.json:
        lines = [{"check": f.check, "status": f.status, "detail": f.detail} for f in found]
        print(json.dumps(lines, ensure_ascii=False))
    else:
        _show(found)
    return FINDING if any(one.status == "failed" for one in found) else OK


def _show(found: "Sequence[Finding]") -> None:
    table = Table("check", "result", "detail")
    for one in found:
        table.add_row(one.check, one.status, one.detail)
    Console().print(table)
