"""The arithmetic of memory: exact where it counts tensors, and it decides what fits."""

import logging
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engines.clef.backbone import stretch_of
from engines.clef.layers import Turn
from engines.clef.plan import (
    FLASH,
    FLASH_HEAD,
    FLASH_TOWER_WEIGHTS,
    key_bytes,
    memory_bytes,
    needed,
    state_bytes,
    token_bytes,
)
from engines.clef.room import fits, room_on, shared_out, unlimited
from engines.clef.settings import ClefSettings

from .unreal import META, Held, held_by_its_output, unreal_model

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


@pytest.mark.parametrize("linear", [True, False], ids=["linear attention", "full attention"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_computing_a_token_takes_no_more_than_planned(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, linear: bool
) -> None:
    monkeypatch.setattr("engines.clef.layers.attended", held_by_its_output)
    tokens, text = 1024, replace(FLASH, linear=(linear,) * 2)
    model = unreal_model(text, dtype)
    embedded = torch.empty(1, tokens, text.hidden, dtype=dtype, device=META)
    place = torch.empty(1, tokens, text.rotary.dims, dtype=dtype, device=META)
    stretch = stretch_of(Turn(place, place), [tokens - 5], None)

    with torch.inference_mode(), Held() as held:
        model.backbone(embedded, stretch, None, model.kernels)

    planned = token_bytes(text, "fp32" if dtype == torch.float32 else "bf16") * tokens
    assert held.most_bytes < planned
    assert not linear or held.most_bytes > 0.7 * planned  # else the estimate is idle


def test_rows_that_end_hold_the_keys_and_states_of_one_layer_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engines.clef.layers.attended", held_by_its_output)
    rows, tokens = 32, 64
    model = unreal_model()
    embedded = torch.empty(rows, tokens, FLASH.hidden, dtype=torch.bfloat16, device=META)
    place = torch.empty(rows, tokens, FLASH.rotary.dims, dtype=torch.bfloat16, device=META)
    stretch = stretch_of(Turn(place, place), [tokens] * rows, None)
    held = {}

    for ends in (True, False):
        with torch.inference_mode(), Held() as counted:
            model.backbone(embedded, stretch, None, model.kernels, ends=ends)
        held[ends] = counted.most_bytes

    kept = rows * (state_bytes(FLASH, "bf16") + tokens * key_bytes(FLASH, "bf16"))
    assert held[False] - held[True] > 0.8 * kept


def test_what_is_left_is_shared_out_and_never_given_twice() -> None:
    for card_gb in (23, 24, 32, 48, 80):
        for fit in fits(SETTINGS, card_gb * GB):
            room = fit.room
            extra = max(0, room.batch_tokens - SETTINGS.chunk_tokens) + room.graph_tokens
            given = extra * token_bytes(FLASH, fit.precision)
            given += 2 * room.openings_bytes + room.prefix_bytes + room.graph_bytes
            assert 0.9 * fit.left_bytes < given <= fit.left_bytes
            assert SETTINGS.chunk_tokens <= room.batch_tokens <= SETTINGS.batch_tokens


def test_nothing_is_given_where_nothing_is_left() -> None:
    room = shared_out(-GB, FLASH, SETTINGS)

    assert room.batch_tokens == SETTINGS.chunk_tokens
    assert (room.openings_bytes, room.prefix_bytes) == (0, 0)
    assert (room.graph_bytes, room.graph_tokens) == (0, 0)


def test_a_device_that_has_less_room_than_the_settings_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free_gb = [3.0]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (int(free_gb[0] * GB), 24 * GB))

    with caplog.at_level(logging.INFO, "tiergate.clef"):
        small = room_on(torch.device("cuda"), FLASH, FLASH_HEAD, SETTINGS)
        free_gb[0] = 120.0
        large = room_on(torch.device("cuda"), FLASH, FLASH_HEAD, SETTINGS)

    assert small.batch_tokens < SETTINGS.batch_tokens
    assert large == unlimited(SETTINGS)
    assert len(caplog.messages) == 1
    assert f"room for {small.batch_tokens} tokens" in caplog.text


def test_shorter_chunks_take_less_memory() -> None:
    short = ClefSettings(Path("clef-flash"), chunk_tokens=512)

    assert fits(short, 24 * GB)[0].left_bytes > fits(SETTINGS, 24 * GB)[0].left_bytes


def test_the_documented_cards_are_what_the_plan_says() -> None:
    page = (Path(__file__).parents[3] / "docs/engines/clef.md").read_text("utf-8")
    table = page[page.index("| card | precision |") :].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert len(rows) >= 5

    for card, precision, said, _, at_once, left in rows:
        options = {} if said == "as they are" else tomllib.loads("\n".join(said.split("`")[1::2]))
        settings = replace(SETTINGS, **options)
        (found,) = (
            fit
            for fit in fits(settings, int(card.removesuffix(" GB")) * GB)
            if fit.precision == precision.split(" or ")[0]
        )
        assert found.left_bytes >= 0, card
        assert at_once == f"{found.room.batch_tokens:,} tokens"
        states = int(left.split(", ")[1].split(" states")[0])
        gigabytes = float(left.split(" GB")[0])
        assert states == found.cached_states
        assert gigabytes == pytest.approx(found.room.prefix_bytes / GB, rel=0.05)
