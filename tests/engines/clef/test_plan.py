"""The arithmetic of memory: exact where it counts tensors, and it decides what fits."""

from pathlib import Path

import pytest

from engines.clef.plan import (
    FLASH,
    FLASH_HEAD,
    FLASH_TOWER_WEIGHTS,
    fits,
    key_bytes,
    memory_bytes,
    needed,
    state_bytes,
)
from engines.clef.settings import ClefSettings

SETTINGS = ClefSettings(Path("clef-flash"))
GB = 1_000_000_000


def test_clef_flash_has_the_published_number_of_weights() -> None:
    need = needed(FLASH, FLASH_HEAD, FLASH_TOWER_WEIGHTS, SETTINGS)

    backbone = need.decoder_bytes + need.tables_bytes + need.tower_bytes
    assert backbone == 18_819_627_488
    assert need.head_bytes == 2 * 121_762_820


def test_a_token_and_a_state_take_what_they_take() -> None:
    assert key_bytes(FLASH, "bf16") == 32_768
    assert memory_bytes(FLASH_HEAD, "bf16") == 2_048
    assert state_bytes(FLASH, "bf16") == 24 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)


@pytest.mark.parametrize(
    ("card_gb", "options", "precisions"),
    [
        (24, {}, ["bf16", "fp8", "int8"]),
        (16, {}, ["fp8", "int8"]),
        (12, {}, []),
        (12, {"tables": "host", "max_images": 0}, ["fp8", "int8"]),
        (48, {"max_tokens": 65_536}, ["bf16", "fp8", "int8"]),
    ],
)
def test_what_fits_on_a_card(
    card_gb: int, options: dict[str, object], precisions: list[str]
) -> None:
    settings = ClefSettings(Path("clef-flash"), **options)  # type: ignore[arg-type]

    found = [fit.precision for fit in fits(settings, card_gb * GB) if fit.left_bytes >= 0]

    assert found == precisions


def test_shorter_chunks_take_less_memory() -> None:
    short = ClefSettings(Path("clef-flash"), chunk_tokens=512)

    assert fits(short, 24 * GB)[0].left_bytes > fits(SETTINGS, 24 * GB)[0].left_bytes
