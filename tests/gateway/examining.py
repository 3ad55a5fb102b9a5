"""A machine on which everything is in order, and what the doctor finds on it."""

from pathlib import Path
from typing import Any

from gateway.config import Settings
from gateway.doctor import examined
from gateway.doctor_found import Found
from gateway.doctor_machine import Machine

ROOT = Path(__file__).parents[2]
NOW_S = 1_796_000_000.0  # 2026-11-30
MACHINE = Machine(
    cpus=4,
    memory_bytes=8 * 2**30,
    now_s=NOW_S,
    synchronised=True,
    gpus=(),
    kernels="the CPU has avx2",
)


def settings_of(ledger: str = "", **sections: Any) -> Settings:
    server = {"trusted_proxies": ["127.0.0.1"], **sections.pop("server", {})}
    whole = {"ledger": {"path": ledger}, "server": server, **sections}
    return Settings.model_validate(whole)


def findings(
    settings: Settings,
    machine: Machine = MACHINE,
    caddyfile: Path | None = ROOT / "Caddyfile",
    **more: Any,
) -> list[Found]:
    facts, promises = more.get("facts", {}), more.get("promises", {})
    found = examined(settings, machine, facts, promises, caddyfile)
    return [one for one in found if one.level == "finding"]
