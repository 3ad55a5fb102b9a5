"""Pulling a checkpoint: the index says which shards there are; Clef (27B) is refused by name."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.clef.checkpoint import INDEX, load
from engines.clef.pull import LISTING, PINNED, refuse_by_name
from engines.clef.refusals import CheckpointError
from engines.hub import MANIFEST, HubError, Source, pulled, recheck, source_of
from tests.engines.hub import Hub, hub

from .golden import TINY

SOURCE = Source("someone/tiny-clef", "0123456789abcdef0123456789abcdef01234567")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    published = Path(shutil.copytree(TINY, tmp_path / "published"))
    (published / "joint_schema_model.py").write_text("raise SystemExit", "utf-8")
    with hub(published, SOURCE.repository, SOURCE.revision) as running:
        yield running


def test_every_shard_of_the_index_is_pulled_and_no_code(server: Hub, tmp_path: Path) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    names = {path.name for path in into.iterdir()}
    assert {f"model-0000{i}-of-00004.safetensors" for i in range(1, 5)} <= names
    assert not any(name.endswith(".py") for name in names)
    assert load(into).text.hidden == 64
    assert recheck(None, LISTING, into) == SOURCE


def test_an_interrupted_pull_goes_on_with_the_missing_shards(server: Hub, tmp_path: Path) -> None:
    server.bytes_left = 700_000
    with pytest.raises(HubError, match=r"model-0000\d"):
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    server.bytes_left = None
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)

    sums = json.loads((into / MANIFEST).read_bytes())["sha256"]
    assert len(sums) == len(LISTING.of(into)) == 10


def test_a_shard_that_changed_since_is_found(server: Hub, tmp_path: Path) -> None:
    into = pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)
    shard = into / "model-00002-of-00004.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")

    with pytest.raises(HubError, match="is not what was pulled"):
        recheck(None, LISTING, into)


def test_an_index_that_leads_out_of_its_directory_is_refused(server: Hub, tmp_path: Path) -> None:
    index = server.folder / INDEX
    tree = json.loads(index.read_bytes())
    tree["weight_map"]["lm_head.weight"] = "../../etc/passwd"
    index.write_text(json.dumps(tree), "utf-8")

    with pytest.raises(CheckpointError, match="outside of its directory"):
        pulled(SOURCE, LISTING, tmp_path / "tiny", endpoint=server.url)


def test_the_pinned_revision_is_a_commit() -> None:
    assert source_of("clef-flash", PINNED).repository == "Cloudflare/clef-flash"
    assert len(PINNED["clef-flash"].revision) == 40


@pytest.mark.parametrize("name", ["clef", "Cloudflare/clef", "cloudflare/Clef"])
def test_clef_27b_is_refused_by_name_with_the_reason(name: str) -> None:
    with pytest.raises(CheckpointError, match=r"27B.*pull clef-flash"):
        refuse_by_name(name)
