"""`tiergate engine import clef`: nothing is built, everything is checked."""

from pathlib import Path

from engines.hub import sha256_of
from gateway.cli.importing import bar, tell_section


def imported(path: Path, precision: str | None, sha256: str | None) -> None:
    """Check that the checkpoint can be served, its tensors among them, and say how.

    Raises:
        CheckpointError: it cannot.
    """
    from engines.clef.checkpoint import HEAD, load
    from engines.clef.refusals import CheckpointError
    from engines.clef.weights import Weights, streamed

    checkpoint = load(path)
    digest = sha256_of(path / HEAD)
    if sha256 is not None and sha256.lower() != digest:
        raise CheckpointError(f"{path / HEAD}: its SHA-256 is {digest}, not {sha256.lower()}")
    weights = Weights(checkpoint)
    try:
        with bar(f"checking {path.name}") as told:
            for name, tensor in streamed(weights, checkpoint.files, told):
                if not bool(tensor.isfinite().all()):
                    raise CheckpointError(f"{path}: the tensor '{name}' holds what is no number")
    finally:
        weights.close()
    print(f"checked: {path}, {len(checkpoint.files)} tensors; it is served as it is")
    print(f"head sha256: {digest}")
    tell_section("clef", path, {"precision": f'"{precision or "bf16"}"', "devices": '["cuda"]'})
