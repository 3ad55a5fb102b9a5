"""Pulling: pinned, resumable, checked, and plain about what to do without a hub."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.hub import MANIFEST, HubError, Source, pulled, sha256_of, source_of
from engines.laya.checkpoint import load
from engines.laya.pull import LISTING, PINNED

from ..hub import Hub, hub
from .golden import GOLDENS

pytest.importorskip("huggingface_hub")

REPOSITORY, COMMIT = "someone/tiny", "0123456789abcdef0123456789abcdef01234567"
SOURCE = Source(REPOSITORY, COMMIT)
FILES = LISTING.fixed


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with hub(GOLDENS / "tiny-english", REPOSITORY, COMMIT) as running:
        yield running


def test_a_pulled_checkpoint_is_whole_and_byte_for_byte_the_published_one(
    server: Hub, tmp_path: Path
) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    for name in FILES:
        assert (into / name).read_bytes() == (GOLDENS / "tiny-english" / name).read_bytes()
    assert load(into).max_len == 512
    assert not list(tmp_path.glob("*.partial"))


def test_what_is_there_already_is_not_fetched_again(server: Hub, tmp_path: Path) -> None:
    pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    again = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint="http://127.0.0.1:9")

    assert again == tmp_path / "tiny"


def test_a_pull_leaves_a_manifest_of_the_revision_and_every_digest(
    server: Hub, tmp_path: Path
) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    manifest = json.loads((into / MANIFEST).read_bytes())
    assert (manifest["repository"], manifest["revision"]) == (REPOSITORY, COMMIT)
    assert manifest["sha256"] == {name: sha256_of(into / name) for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_files_that_changed_since_are_not_passed_off_as_pulled(
    server: Hub, tmp_path: Path, name: str
) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)
    (into / name).write_bytes(b"garbage")

    with pytest.raises(HubError, match="is not what was pulled"):
        pulled(SOURCE, LISTING, into, endpoint=server.url)


def test_another_revision_is_not_passed_off_as_the_one_asked_for(
    server: Hub, tmp_path: Path
) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    with pytest.raises(HubError, match=f"holds {REPOSITORY} at {COMMIT}"):
        pulled(Source(REPOSITORY, "f" * 40), LISTING, into, endpoint=server.url)


def test_files_of_unknown_origin_are_not_passed_off_as_pulled(server: Hub, tmp_path: Path) -> None:
    into = Path(shutil.copytree(server.folder, tmp_path / "tiny"))

    with pytest.raises(HubError, match="says what it is"):
        pulled(SOURCE, LISTING, into, endpoint=server.url)


def test_a_pull_of_another_revision_does_not_go_on_with_these_files(
    server: Hub, tmp_path: Path
) -> None:
    server.bytes_left = 4000
    with pytest.raises(HubError):
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)
    server.bytes_left = None
    begun = list(tmp_path.glob("*.partial"))
    other = Source(REPOSITORY, "f" * 40)
    server.commit, server.prefix = other.revision, server.prefix.replace(COMMIT, other.revision)

    into = pulled(other, LISTING, tmp_path / "tiny", endpoint=server.url)

    assert [folder.name for folder in begun] == [f"tiny.{COMMIT}.partial"]
    assert list(tmp_path.glob("*.partial")) == begun
    assert not server.ranges
    assert json.loads((into / MANIFEST).read_bytes())["revision"] == other.revision


def test_an_interrupted_pull_goes_on_where_it_stopped(server: Hub, tmp_path: Path) -> None:
    server.folder = Path(shutil.copytree(server.folder, tmp_path / "published"))
    (server.folder / "model.safetensors").write_bytes(bytes(25_000_000))
    server.bytes_left = 15_000_000
    with pytest.raises(HubError, match=r"model\.safetensors"):
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)
    assert not (tmp_path / "tiny").exists()

    server.bytes_left = 20_000_000  # not enough to begin again
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    assert int(server.ranges[-1].removeprefix("bytes=").rstrip("-")) >= 10_000_000
    assert (into / "model.safetensors").stat().st_size == 25_000_000


def test_a_file_that_is_not_what_the_hub_says_is_refused(server: Hub, tmp_path: Path) -> None:
    server.spoil = True

    with pytest.raises(HubError, match="not what the hub says"):
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    assert not (tmp_path / "tiny").exists()


def test_without_a_hub_the_error_says_what_to_copy_where(tmp_path: Path) -> None:
    with pytest.raises(HubError) as refused:
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint="http://127.0.0.1:9")

    said = str(refused.value)
    assert all(name in said for name in FILES)
    assert str(tmp_path / "tiny") in said
    assert COMMIT in said


def test_a_repository_that_lacks_a_file_is_named(server: Hub, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="someone/other"):
        pulled(Source("someone/other", COMMIT), LISTING, tmp_path / "tiny", endpoint=server.url)


def test_names_are_pinned_and_other_repositories_need_a_commit() -> None:
    assert source_of("laya", PINNED) == PINNED["laya"]
    assert all(len(source.revision) == 40 for source in PINNED.values())
    assert source_of(REPOSITORY, PINNED, COMMIT) == SOURCE
    for name, revision in (("nonsense", None), (REPOSITORY, None), (REPOSITORY, "main")):
        with pytest.raises(HubError):
            source_of(name, PINNED, revision)


@pytest.mark.parametrize("name", ["lya", "models/lya"])
def test_a_mistyped_path_is_told_as_a_path_too(name: str) -> None:
    with pytest.raises(HubError, match="no directory here"):
        source_of(name, PINNED)
