"""Fetch a checkpoint from the Hugging Face hub: a pinned revision, resumable, digests checked.

Which files a checkpoint is, and what is in them, is for its engine to know.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MANIFEST = "tiergate-pull.json"
"""What a pull leaves beside the files: `repository`, `revision`, and the `sha256` of each file."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 22


class HubError(ValueError):
    """A checkpoint that cannot be had, or is not what it should be; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is published."""

    repository: str
    revision: str
    """A commit: what it holds never changes."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a checkpoint, smallest first."""

    fixed: tuple[str, ...]
    further: Callable[[Path], Sequence[str]] = lambda _: ()
    """Those that are named in the fixed ones, given the directory that holds these."""

    def of(self, directory: Path) -> list[str]:
        """All of them."""
        return [*self.fixed, *self.further(directory)]


def source_of(name: str, pinned: Mapping[str, Source], revision: str | None = None) -> Source:
    """The pinned source of that name, or the hub repository `OWNER/NAME` at `revision`.

    Raises:
        HubError: neither, or a revision that is not a commit.
    """
    known = pinned.get(name)
    if known is None and name.count("/") != 1:
        raise HubError(
            f"'{name}' is no directory here, none of {', '.join(pinned)}, and no hub repository "
            "OWNER/NAME"
        )
    commit = revision or (known.revision if known else "")
    if not commit:
        raise HubError(
            f"'{name}' is no directory here; as a hub repository it needs --revision, a commit "
            "of 40 hex digits"
        )
    if not _COMMIT.fullmatch(commit):
        raise HubError(f"'{commit}' is no revision: a commit of 40 hex digits")
    return Source(known.repository if known else name, commit)


def pulled(source: Source, listing: Listing, into: Path, *, endpoint: str | None = None) -> Path:
    """`into`, holding the checkpoint; nothing is fetched if it was pulled before and is unchanged.

    Files arrive in a folder beside `into` that is named after the commit, and an interrupted pull
    of the same commit goes on there.

    Raises:
        HubError: `into` holds something else, the hub cannot be reached, or a file is not what the
            hub says it is.
        ImportError: huggingface_hub is not installed.
    """
    if into.exists():
        recheck(source, listing, into)
        return into
    partial = _partial(source, into)
    fetch = _Fetch(source, into, endpoint, ", ".join(listing.fixed))
    for name in listing.fixed:
        fetch.file(name)
    names = listing.of(partial)
    for name in names:
        fetch.file(name)
    sums = {name: sha256_of(partial / name) for name in names}
    manifest = {"repository": source.repository, "revision": source.revision, "sha256": sums}
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    os.replace(partial, into)
    return into


def recheck(source: Source | None, listing: Listing, into: Path) -> Source:
    """Where the files in `into` were pulled from; every byte is as it was then.

    Raises:
        HubError: they come from elsewhere than `source`, have changed, or nothing says what they
            are.
    """
    try:
        manifest = json.loads((into / MANIFEST).read_bytes())
        pulled_from = Source(manifest["repository"], manifest["revision"])
        sums = {name: str(manifest["sha256"][name]) for name in listing.fixed}
        sums |= {str(name): str(digest) for name, digest in manifest["sha256"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HubError(
            f"{into}: is there, but has no readable {MANIFEST} that says what it is; to serve it "
            "as it is, import it by its path; to pull, move it away"
        ) from error
    if source is not None and pulled_from != source:
        raise HubError(
            f"{into}: holds {pulled_from.repository} at {pulled_from.revision}, not "
            f"{source.repository} at {source.revision}; move it away or pull --into another folder"
        )
    for name, digest in sums.items():
        if sha256_of(into / name) != digest:
            raise HubError(
                f"{into / name}: is not what was pulled; move {into} away and pull again"
            )
    return pulled_from


def sha256_of(path: Path) -> str:
    """64 hex digits.

    Raises:
        HubError: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise HubError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()


def _partial(source: Source, into: Path) -> Path:
    return into.with_name(f"{into.name}.{source.revision}.partial")


@dataclass(frozen=True, slots=True)
class _Fetch:
    source: Source
    into: Path
    endpoint: str | None
    listed: str

    def file(self, name: str) -> None:
        """Fetch one file, unless it has arrived whole before; it was checked then."""
        import huggingface_hub as hub

        source, partial = self.source, _partial(self.source, self.into)
        if (partial / name).is_file():
            return
        unfinished = partial / f"{name}.part"
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        try:
            url = hub.hf_hub_url(
                source.repository, name, revision=source.revision, endpoint=self.endpoint
            )
            facts = hub.get_hf_file_metadata(url)
            _download(url, facts, unfinished)
        except Exception as error:  # whatever the hub client and its HTTP library may raise
            raise HubError(self._unreachable(name, error)) from error
        if facts.commit_hash not in (None, source.revision):
            raise HubError(f"the hub answered with commit {facts.commit_hash} for {name}")
        if not facts.etag or _digest_like(facts.etag, unfinished) != facts.etag:
            unfinished.unlink()
            raise HubError(
                f"{name} is not what the hub says it is; the file was deleted, pull again"
            )
        os.replace(unfinished, partial / name)

    def _unreachable(self, name: str, error: Exception) -> str:
        return (
            f"{name} of {self.source.repository} cannot be fetched ({type(error).__name__}). "
            f"Without the hub, copy these files of revision {self.source.revision} into "
            f"{self.into}: {self.listed}, and whatever they name"
        )


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
