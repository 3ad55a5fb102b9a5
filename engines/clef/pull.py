"""Where Clef checkpoints are published, which files they are, and which are not served."""

from pathlib import Path

from engines.clef.checkpoint import HEAD, INDEX, PROCESSOR, TOKENIZER
from engines.clef.geometry import CONFIG, HEAD_CONFIG, json_object
from engines.clef.refusals import CheckpointError
from engines.hub import Listing, Source


def _shards(directory: Path) -> list[str]:
    """The files that the index names; their names are never guessed."""
    found = json_object(directory / INDEX).get("weight_map")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise CheckpointError(f"{directory / INDEX}: the key 'weight_map' is missing")
    names = sorted(set(found.values()))
    if any("/" in name or "\\" in name or name.startswith(".") for name in names):
        raise CheckpointError(f"{directory / INDEX}: names a file outside of its directory")
    return names


LISTING = Listing((HEAD_CONFIG, CONFIG, PROCESSOR, TOKENIZER, INDEX, HEAD), _shards)

PINNED = {
    "clef-flash": Source("Cloudflare/clef-flash", "17f0b0ad64efb65d273590632833508766b2aae6"),
}
"""A revision whose reference code is the one that this engine was compared with."""

_NOT_SERVED = ("clef", "Cloudflare/clef")


def refuse_by_name(name: str) -> None:
    """Nothing if a checkpoint of that name may be served.

    Raises:
        CheckpointError: it is Clef (27B), whatever its spelling.
    """
    if name.lower() in {each.lower() for each in _NOT_SERVED}:
        raise CheckpointError(
            f"'{name}' is Clef (27B): its decoder gates its output in another way than "
            "Clef-flash's, and nothing here has been compared with it; pull clef-flash"
        )
