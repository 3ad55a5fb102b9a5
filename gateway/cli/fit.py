"""`tiergate fit`: a head of its own for each question that has labelled examples."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engines.contract import EngineError
from gateway.atomic import make_folder, write_whole
from gateway.cli.fit_promise import Registry, registry
from gateway.cli.grammar import (
    ENVIRONMENT,
    FINDING,
    OK,
    Commands,
    add_json,
    part_left_out,
    share,
)
from gateway.cli.screen import screen
from gateway.config_file import ConfigError
from gateway.config_section import NAME
from gateway.labelled import load_rows
from gateway.policy_file import PolicyFile
from gateway.quota import cpu_quota

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engines.fitted.heads import HeadError
    from gateway.fitting.examples import Examples
    from gateway.fitting.training import Fitted, Terms, TooFew


def add_to(commands: Commands) -> None:
    """Add the command's grammar."""
    command = commands.add_parser(
        "fit", help="make small heads for questions that have labelled examples"
    )
    command.add_argument("labels", nargs="+", type=Path, metavar="FILE", help="JSONL or CSV")
    command.add_argument(
        "--out", type=Path, default=Path("heads"), metavar="DIR", help="default: heads"
    )
    command.add_argument(
        "--question", action="append", metavar="ID", help="only this question; repeatable"
    )
    command.add_argument("--risk", type=share, default=0.05, help="of answers kept (0.05)")
    command.add_argument(
        "--delta", type=share, default=0.1, help="the promises fail together at most so (0.1)"
    )
    command.add_argument(
        "--hold-out",
        type=part_left_out,
        default=0.3,
        metavar="SHARE",
        help="of the examples kept back to promise on; 0 = fit to all, promise nothing (0.3)",
    )
    command.add_argument("--policy", type=Path, metavar="FILE", help="put the promises there")
    command.add_argument(
        "--calibration", type=Path, metavar="FILE", help="default: calibration.json beside it"
    )
    command.add_argument(
        "--engine",
        type=_name,
        default="fitted",
        metavar="NAME",
        help="as the policy names it (fitted)",
    )
    command.add_argument("--report", type=Path, metavar="FILE", help="write a page with plots")
    command.add_argument("--no-cache", action="store_true", help="keep no vectors in DIR/.vectors")
    add_json(command)
    command.set_defaults(run=run)


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' cannot be the name of an engine")
    return text


def run(chosen: argparse.Namespace) -> int:
    """Fit and register; 1 when a question got no head, 4 when packages or files are missing."""
    try:
        return _fit(chosen)
    except ModuleNotFoundError as error:
        print(
            f"tiergate: this needs the package '{error.name}'; install the extras, in "
            "tiergate's folder: pip install '.[cpu,fit]'",
            file=sys.stderr,
        )
        return ENVIRONMENT
    except ImportError as error:
        print(f"tiergate: an installed package cannot be used: {error}", file=sys.stderr)
        return ENVIRONMENT
    except EngineError as error:
        print(f"tiergate: {error}", file=sys.stderr)
        return ENVIRONMENT


def _fit(chosen: argparse.Namespace) -> int:
    from engines.fitted.heads import HeadError, saved
    from gateway.cli.fit_print import show
    from gateway.fitting.page import page
    from gateway.fitting.told import as_json
    from gateway.fitting.training import Fitted, Terms

    examples = _examples(chosen)
    terms = Terms(chosen.risk, chosen.delta / len(examples), chosen.hold_out)
    where = registry(chosen)  # what it refuses is refused before heads are changed
    make_folder(chosen.out)
    before = _served(chosen.out)
    found = _fitted(examples, terms, None if chosen.no_cache else chosen.out / ".vectors")
    heads = [one for one in found if isinstance(one, Fitted)]
    for one in heads:
        saved(one.head, chosen.out)
    after = _served(chosen.out)
    if heads and where is not None and isinstance(after, str):
        change = (before if isinstance(before, str) else None, after)
        _promise(chosen, heads, change, where)
    if chosen.report is not None:
        write_whole(chosen.report, page(found, terms))
    if chosen.json:
        print(json.dumps([as_json(one) for one in found], ensure_ascii=False))
    else:
        show(found, terms, chosen.out)
    if heads and isinstance(after, HeadError):
        print(f"tiergate: the folder cannot be served: {after}", file=sys.stderr)
        return ENVIRONMENT
    return OK if len(heads) == len(found) else FINDING


def _examples(chosen: argparse.Namespace) -> "Mapping[str, Examples]":
    from gateway.fitting.examples import by_question

    found = by_question(load_rows(chosen.labels))
    if chosen.question is None:
        return found
    names = {one.name for one in found.values()}
    for name in chosen.question:
        if name not in names:
            raise ConfigError(
                f"--question {name}: no row has a label for it; there are: "
                f"{', '.join(sorted(names))}"
            )
    return {mark: one for mark, one in found.items() if one.name in chosen.question}


def _fitted(
    examples: "Mapping[str, Examples]", terms: "Terms", cache: Path | None
) -> "Sequence[Fitted | TooFew]":
    from gateway.fitting.training import STEPS, fitted
    from gateway.fitting.vectors import Memory, vectors_of

    texts = [text for one in examples.values() for text in one.texts]
    with _bars() as progress:
        reading = progress.add_task("reading states", total=None)

        def told(done: int, total: int) -> None:
            progress.update(reading, completed=done, total=total)

        vectors = vectors_of(texts, Memory(cache), threads=cpu_quota(), told=told)
        found = []
        for one in examples.values():
            task = progress.add_task(f"fitting {one.name}", total=STEPS)
            found.append(fitted(one, vectors, terms, lambda task=task: progress.advance(task)))  # type: ignore[misc]
            progress.update(task, completed=STEPS)
        return found


def _promise(
    chosen: argparse.Namespace,
    heads: "Sequence[Fitted]",
    digests: tuple[str | None, str],
    where: Registry,
) -> None:
    """Write the policy and the calibration with the new promises in them.

    `digests`: of the folder, before and after.
    """
    from gateway.fitting.promising import Change

    certificates = {
        one.head.fingerprint: (one.head.name, one.evidence.certificate) for one in heads
    }
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    new = PolicyFile(created, chosen.risk, chosen.delta, "labels", len(heads) > 1, {}, ())
    where.write(new, Change(chosen.engine, *digests, certificates))


def _served(folder: Path) -> "str | HeadError":
    """The digest of the engine that reads the folder, or why there would be none."""
    from engines.fitted.engine import digest_of
    from engines.fitted.heads import HeadError, loaded

    try:
        return digest_of(loaded(folder))
    except HeadError as error:
        return error


@contextmanager
def _bars() -> "Iterator[Progress]":
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen(errors=True)) as progress:
        yield progress
