"""`tiergate engine import laya`: the graph that is served, drawn from the weights."""

from pathlib import Path

from gateway.cli.importing import bar, tell_section


def imported(path: Path, precision: str | None, sha256: str | None) -> None:
    """Draw the graph beside the weights and say how to serve it.

    Raises:
        CheckpointError: the checkpoint cannot be served, or not in this precision.
    """
    from engines.laya.artifact import Precision
    from engines.laya.artifact import imported as drawn
    from engines.laya.checkpoint import load
    from engines.laya.tensors import CheckpointError

    known: dict[str, Precision] = {"fp32": "fp32", "int8": "int8"}
    wanted = known.get(precision or "fp32")
    if wanted is None:
        raise CheckpointError(f"laya is imported in {' or '.join(known)}, not in {precision}")
    checkpoint = load(path)
    with bar(f"importing {path.name} as {wanted}") as told:
        made = drawn(checkpoint, wanted, sha256=sha256, progress=told)
    print(f"imported: {made.graph.parent}")
    print(f"source sha256: {made.manifest.source_sha256}")
    tell_section("laya", path, {"precision": f'"{wanted}"'})
