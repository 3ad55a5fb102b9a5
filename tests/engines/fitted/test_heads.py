"""Heads on disk: what is written is what is read, and what is no head is refused by name."""

import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.contract import Choice, Noul
from engines.fingerprint import fingerprint
from engines.fitted.engine import digest_of
from engines.fitted.heads import HeadError, loaded, read_head, saved

from .knowing import drawn

ASKED = Noul("Is it spam?")


def test_a_saved_head_is_read_back_whole(tmp_path: Path) -> None:
    head = replace(drawn(ASKED, name="spam"), made={"rows": 12, "accuracy": 0.9})

    path = saved(head, tmp_path / "heads")

    back = read_head(path)
    assert path.name == f"{fingerprint(ASKED)}.npz"
    assert (back.fingerprint, back.kind, back.name) == (head.fingerprint, "noul", "spam")
    assert back.made == {"rows": 12, "accuracy": 0.9}
    assert back.digest == head.digest
    assert np.array_equal(back.weights, head.weights)
    assert np.array_equal(back.bias, head.bias)


def test_a_large_head_is_a_few_hundred_kilobytes(tmp_path: Path) -> None:
    path = saved(drawn(Choice({f"option {n}": None for n in range(150)})), tmp_path)

    assert path.stat().st_size < 300_000


def test_a_head_replaces_the_one_before_and_leaves_no_draft(tmp_path: Path) -> None:
    first = drawn(ASKED)
    second = replace(first, bias=first.bias + 1)

    saved(first, tmp_path)
    saved(second, tmp_path)

    assert os.listdir(tmp_path) == [f"{first.fingerprint}.npz"]
    assert loaded(tmp_path)[first.fingerprint].digest == second.digest


def test_a_head_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = drawn(ASKED)
    saved(head, tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        saved(replace(head, bias=head.bias + 1), tmp_path)

    assert os.listdir(tmp_path) == [f"{head.fingerprint}.npz"]
    assert loaded(tmp_path)[head.fingerprint].digest == head.digest


def test_a_folder_without_heads_says_what_makes_them(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(HeadError, match="tiergate fit"):
            loaded(folder)


def test_a_head_of_another_encoder_is_refused_by_both_digests(tmp_path: Path) -> None:
    path = saved(replace(drawn(ASKED), encoder="f" * 64), tmp_path)

    with pytest.raises(HeadError, match=r"another encoder \(ffffffffffff\)") as refused:
        loaded(tmp_path)

    assert path.name in str(refused.value)


def test_two_heads_for_one_question_are_refused(tmp_path: Path) -> None:
    path = saved(drawn(ASKED), tmp_path)
    (tmp_path / "copy.npz").write_bytes(path.read_bytes())

    with pytest.raises(HeadError, match="reads a question that another head reads"):
        loaded(tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 100, 1000])
def test_half_a_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = saved(drawn(ASKED), tmp_path)
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(HeadError, match="is not a head that can be read"):
        loaded(tmp_path)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(pickle.dumps({"weights": 1}))

    with pytest.raises(HeadError, match="is not a head"):
        loaded(tmp_path)


def test_objects_inside_an_archive_are_never_opened(tmp_path: Path) -> None:
    head = drawn(ASKED)
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "bad.npz", weights=head.weights, bias=head.bias, card=objects)

    with pytest.raises(HeadError, match="is not a head"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bias": np.zeros(3, np.float32)}, "an array is"),
        ({"weights": np.zeros((2, 10), np.float32)}, "an array is"),
        ({"weights": np.zeros((2, 384), np.float64)}, "an array is float64"),
        ({"bias": np.array([0, np.nan], np.float32)}, "not finite"),
    ],
)
def test_arrays_that_make_no_head_are_refused(
    tmp_path: Path, change: dict[str, np.ndarray], said: str
) -> None:
    saved(replace(drawn(ASKED), **change), tmp_path)  # type: ignore[arg-type]

    with pytest.raises(HeadError, match=said):
        loaded(tmp_path)


def test_an_engines_digest_depends_on_every_head_and_on_nothing_else(tmp_path: Path) -> None:
    one, two = drawn(ASKED), drawn(Noul("Is it urgent?"))
    both = {head.fingerprint: head for head in (one, two)}
    turned = {head.fingerprint: head for head in (two, one)}
    told = both | {one.fingerprint: replace(one, made={"rows": 3}, name="other")}
    changed = both | {one.fingerprint: replace(one, bias=one.bias + 1)}

    assert digest_of(both) == digest_of(turned) == digest_of(told)
    assert len({digest_of(heads) for heads in (both, changed, {one.fingerprint: one})}) == 3
