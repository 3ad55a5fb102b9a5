"""`tiergate engine import | plan | pull | verify`: get a model ready before it is served."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rich.table import Table

from engines.hub import HubError, Listing, Source, pulled, source_of
from gateway.cli import engine_clef, engine_laya, engine_plan
from gateway.cli.grammar import ENVIRONMENT, FINDING, OK, Commands, add_json
from gateway.cli.importing import bar
from gateway.cli.whole import print_whole

_PINNED = ("laya", "laya-multilingual", "laya-typed-decisions", "clef-flash")


class Finding(Protocol):
    """One line of what verifying finds."""

    @property
    def check(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def detail(self) -> str: ...


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser("engine", help="import, plan, pull or verify a model's weights")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_import(actions)
    engine_plan.add_to(actions)
    _add_pull(actions)
    _add_verify(actions)
    command.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Do what was chosen; 1 when verification fails, 4 when weights or packages are missing."""
    from engines.clef import refusals
    from engines.laya.tensors import CheckpointError

    try:
        code: int = chosen.act(chosen)
    except (CheckpointError, HubError, refusals.CheckpointError, refusals.DeviceError) as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT
    except ImportError as error:
        clef = "clef" in getattr(chosen, "engine", "") + getattr(chosen, "source", "")
        extra = "'.[clef]'" if clef else "'.[cpu,laya]' ('.[cuda,laya]' for a GPU)"
        print(
            f"tiergate: this needs the package '{error.name}'; install the extra, "
            f"in tiergate's folder: pip install {extra}",
            file=sys.stderr,
        )
        return ENVIRONMENT
    return code


def _add_import(actions: Commands) -> None:
    action = actions.add_parser("import", help="check the weights and build what is served")
    action.add_argument("engine", choices=("clef", "laya"))
    action.add_argument(
        "source", metavar="PATH|HUB_ID", help="checkpoint directory, or where to pull"
    )
    action.add_argument(
        "--precision",
        choices=("bf16", "fp32", "fp8", "int8"),
        help="default: fp32 for laya, which has int8 too; bf16 for clef",
    )
    action.add_argument(
        "--sha256",
        metavar="HEX",
        help="what laya's model.safetensors or clef's joint_head.safetensors must hash to",
    )
    _add_hub(action)
    action.set_defaults(act=_import)


def _add_pull(actions: Commands) -> None:
    action = actions.add_parser("pull", help="fetch a checkpoint from the Hugging Face hub")
    action.add_argument("source", metavar="NAME", help=f"{', '.join(_PINNED)}, or OWNER/NAME")
    action.add_argument(
        "--kind", choices=("clef", "laya"), help="whose files; default: clef if its name says so"
    )
    _add_hub(action)
    action.set_defaults(act=_pull)


def _add_verify(actions: Commands) -> None:
    action = actions.add_parser("verify", help="check weights against golden requests")
    action.add_argument("engine", choices=("clef", "laya"))
    action.add_argument("path", metavar="PATH", type=Path, help="checkpoint directory")
    action.add_argument("--device", default="cpu", help="clef: cpu (the default), cuda, cuda:1, …")
    action.add_argument(
        "--max-delta", type=float, help="fail if an 8-bit probability moves further than this"
    )
    add_json(action)
    action.set_defaults(act=_verify)


def _add_hub(action: argparse.ArgumentParser) -> None:
    action.add_argument("--revision", metavar="COMMIT", help="default: the reviewed one")
    action.add_argument("--into", metavar="DIR", type=Path, help="default: ./models/NAME")


def _import(chosen: argparse.Namespace) -> int:
    path = Path(chosen.source)
    if not path.is_dir() and not path.is_absolute() and chosen.source.count("/") <= 1:
        path = _pulled(chosen, chosen.engine)
    action = engine_clef if chosen.engine == "clef" else engine_laya
    action.imported(path, chosen.precision, chosen.sha256)
    return OK


def _pull(chosen: argparse.Namespace) -> int:
    kind = chosen.kind or ("clef" if "clef" in chosen.source.lower() else "laya")
    print(f"pulled: {_pulled(chosen, kind)}")
    return OK


def _pulled(chosen: argparse.Namespace, kind: str) -> Path:
    pinned, listing = _published(kind, chosen.source)
    source = source_of(chosen.source, pinned, chosen.revision)
    into = chosen.into or Path("models") / chosen.source.rsplit("/", 1)[-1]
    into.parent.mkdir(parents=True, exist_ok=True)
    return pulled(source, listing, into, endpoint=os.environ.get("HF_ENDPOINT"))


def _published(kind: str, name: str) -> tuple[dict[str, Source], Listing]:
    """What is pinned, and which files a checkpoint of that kind is."""
    from engines.clef import pull as clef
    from engines.laya import pull as laya

    if kind == "laya":
        return laya.PINNED | ({} if name in laya.PINNED else clef.PINNED), laya.LISTING
    clef.refuse_by_name(name)
    return clef.PINNED, clef.LISTING


def _verify(chosen: argparse.Namespace) -> int:
    if chosen.engine == "clef":
        from engines.clef import verify

        with bar(f"loading {chosen.path.name}") as told:
            found: list[Finding] = list(
                verify.findings(
                    chosen.path, device=chosen.device, max_delta=chosen.max_delta, progress=told
                )
            )
    else:
        from engines.laya.verify import findings

        found = list(findings(chosen.path, max_delta=chosen.max_delta))
    if chosen.json:
        lines = [{"check": f.check, "status": f.status, "detail": f.detail} for f in found]
        print(json.dumps(lines, ensure_ascii=False))
    else:
        _show(found)
    return FINDING if any(one.status == "failed" for one in found) else OK


def _show(found: Sequence[Finding]) -> None:
    table = Table("check", "result", "detail")
    for one in found:
        table.add_row(one.check, one.status, one.detail)
    print_whole(table)
