"""A Clef checkpoint directory, read and checked: everything but the weights themselves."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from engines.clef.geometry import (
    CONFIG,
    HEAD_CONFIG,
    Head,
    Text,
    Vision,
    head_of,
    json_object,
    text_of,
    vision_of,
)
from engines.clef.refusals import CheckpointError

HEAD = "joint_head.safetensors"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TOKENIZER = "tokenizer.json"
PROCESSOR = "processor_config.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A directory that can be served."""

    directory: Path
    text: Text
    head: Head
    vision: Vision | None
    """`None` where images are not wanted."""
    files: dict[str, str]
    """Tensor → file, as the index has it; without the head's."""
    text_digest: str
    """Of everything that decides an answer except the weights, 32 hex digits."""

    def tokenizer(self) -> Tokenizer:
        """As the file says; whoever needs another behaviour takes one of its own."""
        return tokenizer_of((self.directory / TOKENIZER).read_text("utf-8"), str(self.directory))


def load(directory: Path, *, images: bool = True) -> Checkpoint:
    """The checkpoint in `directory`, its texts read and checked; the weights are not touched.

    Raises:
        CheckpointError: a file is missing or says something this engine cannot serve.
    """
    if not directory.is_dir():
        raise CheckpointError(
            f"{directory}: no such directory; it must hold {CONFIG}, {INDEX} and the files it "
            f"names, {HEAD_CONFIG}, {HEAD} and {TOKENIZER}"
        )
    text = text_of(directory / CONFIG)
    head = head_of(directory / HEAD_CONFIG, text)
    vision = vision_of(directory / CONFIG) if images else None
    files = _files(directory)
    for name in sorted({HEAD, TOKENIZER, *files.values()}):
        if not (directory / name).is_file():
            raise CheckpointError(f"{directory / name}: this file is missing")
    found = Checkpoint(directory, text, head, vision, files, _digest(directory))
    size = found.tokenizer().get_vocab_size()
    if size > text.vocabulary:
        raise CheckpointError(
            f"{directory / TOKENIZER}: has {size} tokens, the decoder only {text.vocabulary}"
        )
    return found


def tokenizer_of(text: str, where: str) -> Tokenizer:
    """The tokenizer that the text of a `tokenizer.json` describes.

    Raises:
        CheckpointError: it describes none.
    """
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more exact
        raise CheckpointError(f"{where}: not a tokenizer ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _files(directory: Path) -> dict[str, str]:
    """Tensor → file. Names of shards are never guessed."""
    path = directory / INDEX
    if not path.is_file() and (directory / SINGLE).is_file():
        from engines.clef.weights import names_in  # torch is needed to read weights only

        return dict.fromkeys(names_in(directory / SINGLE), SINGLE)
    found = json_object(path).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise CheckpointError(f"{path}: the key 'weight_map' is missing")
    for name, file in found.items():
        if not isinstance(file, str) or "/" in file or "\\" in file or file.startswith("."):
            raise CheckpointError(f"{path}: the tensor '{name}' lies in no file of this directory")
    return found


def _digest(directory: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in (CONFIG, HEAD_CONFIG, TOKENIZER, PROCESSOR):
        path = directory / name
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
