"""Fetch a checkpoint from the Hugging Face hub: a pinned revision, resumable, digests checked."""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engines.laya.artifact import sha256_of
from engines.laya.checkpoint import CONFIG, ENCODER, SPECIALS, TOKENIZER, WEIGHTS
from engines.laya.tensors import CheckpointError

FILES = (CONFIG, ENCODER, TOKENIZER, SPECIALS, WEIGHTS)
"""Everything a checkpoint is, smallest first."""

MANIFEST = "tiergate-pull.json"
"""What a pull leaves beside the files: `repository`, `revision`, and the `sha256` of each file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is published."""

    repository: str
    revision: str
    """A commit: what it holds never changes."""


PINNED = {
    "laya": Source("convaiinnovations/laya", "55cf4c4ebb4ebe31b2550e8bdf3bd21b99753851"),
    "laya-multilingual": Source(
        "convaiinnovations/laya-multilingual", "e4e9ddf21a7b1903b7acffd8814ad4307bf63a67"
    ),
    "laya-typed-decisions": Source(
        "convaiinnovations/laya-typed-decisions", "1a793eb568e6718f15941d08f85432581df534e3"
    ),
}
"""The revisions that the reference package 0.4.15 names as reviewed."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def source_of(name: str, revision: str | None = None) -> Source:
    """The pinned source of that name, or the hub repository `OWNER/NAME` at `revision`.

    Raises:
        CheckpointError: neither, or a revision that is not a commit.
    """
    pinned = PINNED.get(name)
    if pinned is None and name.count("/") != 1:
        raise CheckpointError(
            f"'{name}' is no directory here, none of {', '.join(PINNED)}, and no hub repository "
            "OWNER/NAME"
        )
    commit = revision or (pinned.revision if pinned else "")
    if not commit:
        raise CheckpointError(
            f"'{name}' is no directory here; as a hub repository it needs --revision, a commit "
            "of 40 hex digits"
        )
    if not _COMMIT.fullmatch(commit):
        raise CheckpointError(f"'{commit}' is no revision: a commit of 40 hex digits")
    return Source(pinned.repository if pinned else name, commit)


def pulled(source: Source, into: Path, *, endpoint: str | None = None) -> Path:
    """`into`, holding the checkpoint; nothing is fetched if it was pulled before and is unchanged.

    Files arrive in a folder beside `into` that is named after the commit, and an interrupted pull
    of the same commit goes on there.

    Raises:
        CheckpointError: `into` holds something else, the hub cannot be reached, or a file is not
            what the hub says it is.
        ImportError: huggingface_hub is not installed.
    """
    if into.exists():
        _recheck(source, into)
        return into
    partial = _partial(source, into)
    for name in FILES:
        _fetch(source, name, into, endpoint)
    sums = {name: sha256_of(partial / name) for name in FILES}
    manifest = {"repository": source.repository, "revision": source.revision, "sha256": sums}
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    os.replace(partial, into)
    return into


def _recheck(source: Source, into: Path) -> None:
    """Nothing if `into` holds what was pulled from `source`, byte for byte."""
    try:
        manifest = json.loads((into / MANIFEST).read_bytes())
        pulled_from = Source(manifest["repository"], manifest["revision"])
        sums = {name: str(manifest["sha256"][name]) for name in FILES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{into}: is there, but has no readable {MANIFEST} that says what it is; to serve it "
            "as it is, import it by its path; to pull, move it away"
        ) from error
    if pulled_from != source:
        raise CheckpointError(
            f"{into}: holds {pulled_from.repository} at {pulled_from.revision}, not "
            f"{source.repository} at {source.revision}; move it away or pull --into another folder"
        )
    for name, digest in sums.items():
        if sha256_of(into / name) != digest:
            raise CheckpointError(
                f"{into / name}: is not what was pulled; move {into} away and pull again"
            )


def _partial(source: Source, into: Path) -> Path:
    return into.with_name(f"{into.name}.{source.revision}.partial")


def _fetch(source: Source, name: str, into: Path, endpoint: str | None) -> None:
    import huggingface_hub as hub

    partial = _partial(source, into)
    if (partial / name).is_file():
        return  # arrived whole, and was checked then
    unfinished = partial / f"{name}.part"
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    try:
        url = hub.hf_hub_url(source.repository, name, revision=source.revision, endpoint=endpoint)
        facts = hub.get_hf_file_metadata(url)
        _download(url, facts, unfinished)
    except Exception as error:  # whatever the hub client and its HTTP library may raise
        raise CheckpointError(_unreachable(source, name, into, error)) from error
    if facts.commit_hash not in (None, source.revision):
        raise CheckpointError(f"the hub answered with commit {facts.commit_hash} for {name}")
    if not facts.etag or _digest_like(facts.etag, unfinished) != facts.etag:
        unfinished.unlink()
        raise CheckpointError(
            f"{name} is not what the hub says it is; the file was deleted, pull again"
        )
    os.replace(unfinished, partial / name)


def _download(url: str, facts: Any, into: Path) -> None:
    """Append what is missing. The hub's own download begins again in every process."""
    from huggingface_hub import get_token
    from huggingface_hub.file_download import http_get

    same_host = urlsplit(facts.location).netloc == urlsplit(url).netloc
    token = get_token() if same_host else None  # no token to other hosts
    headers = {"authorization": f"Bearer {token}"} if token else {}
    into.touch()
    with into.open("r+b") as file:
        begun_bytes = file.seek(0, os.SEEK_END)
        http_get(
            facts.location,
            file,
            resume_size=begun_bytes,
            headers=headers,
            expected_size=facts.size,
            displayed_filename=into.stem,
        )


def _digest_like(etag: str, path: Path) -> str:
    """The file's digest in the form of the hub's tag: SHA-256 of large files, a git blob's of
    small ones."""
    if _SHA256.fullmatch(etag):
        return sha256_of(path)
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _unreachable(source: Source, name: str, into: Path, error: Exception) -> str:
    return (
        f"{name} of {source.repository} cannot be fetched ({type(error).__name__}). Without the "
        f"hub, copy these files of revision {source.revision} into {into}: {', '.join(FILES)}"
    )
