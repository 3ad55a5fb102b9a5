"""Images of callers: bounded before they are unpacked, upright, in the checkpoint's sizes."""

import io
import struct
import zlib

import pytest
import torch
from PIL import Image

from engines.clef.checkpoint import Checkpoint
from engines.clef.images import MAX_BYTES, Sight, fitted, picture, sight
from engines.clef.prompt import Picture
from engines.clef.shapes import VISION
from engines.clef.vision import Tower
from engines.clef.weights import Weights
from engines.contract import Asset, Reason, Unreadable


@pytest.fixture(scope="module")
def how(checkpoint: Checkpoint) -> Sight:
    assert checkpoint.vision is not None
    return sight(checkpoint.directory, checkpoint.vision)


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def half() -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (128, 64), "red")
    image.paste("blue", (64, 0, 128, 64))
    return image


def seen(content: bytes, how: Sight) -> Picture:
    return picture(Asset("image/png", content), how)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_png_jpeg_and_webp_are_read(how: Sight, form: str) -> None:
    found = seen(encoded(half(), form), how)

    assert (found.rows, found.columns, found.tokens) == (4, 8, 8)


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF"])
def test_other_formats_are_refused(how: Sight, form: str) -> None:
    with pytest.raises(Unreadable, match="cannot be decoded") as refused:
        seen(encoded(half(), form), how)

    assert refused.value.reason is Reason.IMAGES


def test_an_image_is_turned_as_its_camera_says(how: Sight) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = half().rotate(90, expand=True)

    upright = seen(encoded(lying, "PNG", exif=exif), how)

    assert (upright.rows, upright.columns) == (4, 8)
    assert upright == seen(encoded(half()), how)


def test_transparent_and_grey_images_are_read_as_rgb(how: Sight) -> None:
    grey = seen(encoded(half().convert("L")), how)
    palette = seen(encoded(half().convert("P")), how)

    assert grey.tokens == 8
    assert palette == seen(encoded(half()), how)


def test_too_many_bytes_are_refused_before_anything_is_decoded(how: Sight) -> None:
    with pytest.raises(Unreadable, match=str(MAX_BYTES)):
        seen(encoded(half()) + bytes(MAX_BYTES), how)


def bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes that says it is large."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize(("width", "height"), [(4001, 4000), (60_000, 60_000)])
def test_decompression_bombs_are_refused_by_their_header(
    how: Sight, width: int, height: int
) -> None:
    with pytest.raises(Unreadable, match="pixels"):
        seen(bomb(width, height), how)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", encoded(half())[:100]])
def test_what_cannot_be_decoded_is_refused(how: Sight, content: bytes) -> None:
    with pytest.raises(Unreadable, match="cannot be decoded"):
        seen(content, how)


def test_sides_are_multiples_of_a_merged_patch_and_areas_are_bounded(how: Sight) -> None:
    assert fitted(96, 160, how) == (96, 160)
    assert fitted(70, 130, how) == (64, 128)
    assert fitted(1, 1, how) == (64, 64)
    high, wide = fitted(5000, 4999, how)
    assert high * wide <= how.most_pixels
    assert high % how.factor == wide % how.factor == 0


def test_a_tower_of_sixteen_bits_keeps_its_positions_exact(checkpoint: Checkpoint) -> None:
    assert checkpoint.vision is not None
    weights = Weights(checkpoint)
    own = {name.removeprefix(VISION): weights.tensor(name) for name in weights.vision_names}
    weights.close()

    towers = [
        Tower(checkpoint.vision, own, torch.device("cpu"), dtype)._module
        for dtype in (torch.float32, torch.bfloat16)
    ]

    assert {p.dtype for p in towers[1].parameters()} == {torch.bfloat16}
    exact, coarse = (dict(tower.named_buffers()) for tower in towers)
    assert exact
    for name, buffer in exact.items():
        assert torch.equal(coarse[name], buffer), name


def test_ribbons_are_refused(how: Sight) -> None:
    with pytest.raises(Unreadable, match="200 times"):
        fitted(10, 2001, how)
