"""Files are there whole or not at all, and nothing but files is written."""

import os
from pathlib import Path

import pytest

from gateway.atomic import make_folder, refuse_target, write_together, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    write_whole(path, "old")
    write_whole(path, "new")

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert names(tmp_path) == ["policy.toml"]


def test_when_one_cannot_be_written_none_is(tmp_path: Path) -> None:
    path, lost = tmp_path / "a", tmp_path / "nowhere" / "b"
    path.write_text("old")

    with pytest.raises(OSError, match="No such file") as failed:
        write_together({path: "new", lost: "new"})

    assert failed.value.filename == str(lost), "the path is named, and not its draft"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_what_is_no_text_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")

    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("kind", ["pipe", "directory", "device"])
def test_what_is_no_file_is_not_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/null")
    before = path.stat()

    with pytest.raises(OSError, match=f"it is a {kind}, not a file") as failed:
        write_whole(path, "text")

    assert failed.value.filename == str(path)
    assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)
    with pytest.raises(OSError, match="not a file"):
        refuse_target(path)


def test_where_a_link_leads_is_written_and_the_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "shared.toml", tmp_path / "policy.toml"
    target.write_text("old")
    link.symlink_to(target)

    write_whole(link, "new")

    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_folder_is_made_unless_something_else_stands_there(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "file").touch()

    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(NotADirectoryError) as failed:
        make_folder(tmp_path / "file")
    assert failed.value.filename == str(tmp_path / "file")
