"""Images of callers to patches for the vision tower: bounded, decoded by Pillow, resized.

The rules of size are those of the checkpoint's processor (Qwen2-VL): sides are multiples of a
merged patch, the area lies within bounds, the aspect stays about what it was.
"""

import hashlib
import io
import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torch.nn import functional

from engines.clef.checkpoint import PROCESSOR
from engines.clef.geometry import Vision, json_object
from engines.clef.prompt import Picture
from engines.clef.refusals import CheckpointError
from engines.contract import Asset, Reason, Unreadable

MAX_PIXELS = 16_000_000
MAX_BYTES = 4 << 20
_MAX_ASPECT = 200
_FORMATS = ("PNG", "JPEG", "WEBP")
_BICUBIC = 3


@dataclass(frozen=True, slots=True)
class Sight:
    """How the checkpoint wants its images."""

    vision: Vision
    least_pixels: int
    most_pixels: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def factor(self) -> int:
        """Sides are multiples of it."""
        return self.vision.patch * self.vision.merge


def sight(directory: Path, vision: Vision) -> Sight:
    """From `processor_config.json`.

    Raises:
        CheckpointError: it is missing or wants something else than resizing and normalising.
    """
    path = directory / PROCESSOR
    tree = json_object(path).get("image_processor")
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: the key 'image_processor' is missing")
    for key in ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"):
        if tree.get(key) is not True:
            raise CheckpointError(f"{path}: '{key}' is not true")
    if tree.get("resample") != _BICUBIC or not math.isclose(
        float(tree.get("rescale_factor", 0)), 1 / 255, rel_tol=1e-6
    ):
        raise CheckpointError(f"{path}: 'resample' is not {_BICUBIC} or 'rescale_factor' not 1/255")
    try:
        return Sight(
            vision,
            int(tree["size"]["shortest_edge"]),
            int(tree["size"]["longest_edge"]),
            tuple(float(x) for x in tree["image_mean"]),
            tuple(float(x) for x in tree["image_std"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: 'size', 'image_mean' or 'image_std' is amiss") from error


def picture(asset: Asset, sight: Sight) -> Picture:
    """The image as patches of the tower.

    Raises:
        Unreadable: it is too large, no image, or of another format.
    """
    if len(asset.content) > MAX_BYTES:
        raise _refused(f"an image has at most {MAX_BYTES} bytes")
    values = _normalised(_resized(_decoded(asset.content), sight), sight)
    rows, columns = (side // sight.vision.patch for side in values.shape[1:])
    content = _patches(values, sight.vision).numpy().tobytes()
    digest = hashlib.blake2b(content, digest_size=16)
    digest.update(f"{rows}x{columns}".encode())
    return Picture(content, rows, columns, sight.vision.merge, digest.digest())


def fitted(height: int, width: int, sight: Sight) -> tuple[int, int]:
    """Height and width an image is resized to.

    Raises:
        Unreadable: one side is more than 200 times the other.
    """
    if max(height, width) > _MAX_ASPECT * min(height, width):
        raise _refused(f"an image is at most {_MAX_ASPECT} times as long as wide")
    factor = sight.factor
    sides = [round(side / factor) * factor for side in (height, width)]
    area = sides[0] * sides[1]
    if area > sight.most_pixels:
        shrink = math.sqrt(height * width / sight.most_pixels)
        sides = [max(factor, math.floor(s / shrink / factor) * factor) for s in (height, width)]
    elif area < sight.least_pixels:
        grow = math.sqrt(sight.least_pixels / (height * width))
        sides = [math.ceil(s * grow / factor) * factor for s in (height, width)]
    return sides[0], sides[1]


def _decoded(content: bytes) -> Image.Image:
    """Upright, in RGB. The header is looked at before any pixel is unpacked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise _refused(f"an image has at most {MAX_PIXELS} pixels")
                upright = ImageOps.exif_transpose(image)
                return upright.convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise _refused("an image cannot be decoded") from error
    except Image.DecompressionBombError as error:
        raise _refused(f"an image has at most {MAX_PIXELS} pixels") from error


def _resized(image: Image.Image, sight: Sight) -> Tensor:
    """uint8[3, height, width], by torch's own rounding: Pillow's differs in the last bit."""
    pixels = torch.from_numpy(np.array(image, np.uint8)).permute(2, 0, 1)[None]
    size = fitted(image.height, image.width, sight)
    if size != (image.height, image.width):
        pixels = functional.interpolate(
            pixels, size, mode="bicubic", antialias=True, align_corners=False
        )
    return pixels[0]


def _normalised(pixels: Tensor, sight: Sight) -> Tensor:
    """float32; mean and deviation are scaled up, not pixels down: so are the reference's bits."""
    mean, deviation = (
        torch.tensor(each)[:, None, None] * 255 for each in (sight.mean, sight.deviation)
    )
    return (pixels.float() - mean) / deviation


def _patches(values: Tensor, vision: Vision) -> Tensor:
    """[rows × columns, channels × temporal × patch × patch]: patches that merge stand together."""
    channels, height, width = values.shape
    patch, merge = vision.patch, vision.merge
    shape = (height // patch // merge, merge, patch, width // patch // merge, merge, patch)
    blocks = values.reshape(channels, *shape).permute(1, 4, 2, 5, 0, 3, 6)
    still = blocks[:, :, :, :, :, None].expand(-1, -1, -1, -1, -1, vision.temporal, -1, -1)
    return still.reshape((height // patch) * (width // patch), -1).contiguous()


def _refused(message: str) -> Unreadable:
    return Unreadable(message, reason=Reason.IMAGES)
