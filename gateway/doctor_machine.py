"""The machine as `tiergate doctor` sees it: CPUs, memory, clock, devices, files with secrets."""

import importlib.util
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.quota import control_groups, cpu_quota, memory_limit_bytes

_ASK_S = 5.0
_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found at one moment."""

    cpus: int
    """That this process may use."""
    memory_bytes: int
    """That this process may use more than now."""
    now_s: float
    synchronised: bool | None
    """Whether the clock follows a time server; `None` = nobody says."""
    gpus: tuple[str, ...]
    """Name, memory in MiB and driver of each, as nvidia-smi tells it."""
    kernels: str
    """Which of the instructions that matter here the CPU has."""
    secret_files: tuple[Path, ...] = ()
    """Files that the configuration reads keys from."""

    @property
    def gpu_bytes(self) -> tuple[int, ...]:
        """Memory of each GPU that says how much it has."""
        found = (re.search(r", (\d+) MiB", one) for one in self.gpus)
        return tuple(int(one[1]) << 20 for one in found if one is not None)

    def lacks_for(self, kind: str) -> str:
        """What an engine of this kind lacks to use a GPU; empty = nothing."""
        if kind == "clef":
            if importlib.util.find_spec("torch") is None:
                return "torch is not installed; in tiergate's folder: pip install '.[clef]'"
            import torch

            return "" if torch.cuda.is_available() else "torch finds no usable CUDA device"
        if importlib.util.find_spec("onnxruntime") is None:
            return "onnxruntime is not installed; in tiergate's folder: pip install '.[cuda]'"
        from engines.runtime import onnxruntime

        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            return ""
        return "this onnxruntime has no CUDA provider; pip install onnxruntime-gpu instead of it"


def this_machine(config: Path | None) -> Machine:
    """What is found now; `config` is the file whose key files are to be looked at."""
    return Machine(
        cpus=cpu_quota(),
        memory_bytes=_memory(),
        now_s=time.time(),
        synchronised=_synchronised(),
        gpus=_gpus(),
        kernels=_kernels(),
        secret_files=_secret_files(config),
    )


def _memory() -> int:
    """The smaller of what the machine has left and what the control group allows."""
    table = Path("/proc/meminfo").read_text(encoding="ascii")
    found = re.search(r"^MemAvailable:\s+(\d+) kB", table, re.MULTILINE)
    left = int(found[1]) * 1024 if found else 0
    limit = memory_limit_bytes(control_groups())
    return left if limit is None else min(left, limit)


def _synchronised() -> bool | None:
    told = _told(("timedatectl", "show", "--property=NTPSynchronized", "--value"))
    return {"yes": True, "no": False}.get(told)


def _gpus() -> tuple[str, ...]:
    fields = "--query-gpu=name,memory.total,driver_version"
    told = _told(("nvidia-smi", fields, "--format=csv,noheader"))
    return tuple(line.strip() for line in told.splitlines() if line.strip())


def _told(command: Sequence[str]) -> str:
    """Standard output of a program; empty when it is not there or fails."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        ended = subprocess.run(  # noqa: S603 - a fixed command
            [program, *command[1:]], capture_output=True, text=True, timeout=_ASK_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stdout.strip()


def _kernels() -> str:
    try:
        table = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "the CPU's instructions cannot be told"
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", table, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    had = [flag for flag in _FLAGS if flag in flags]
    return f"the CPU has {', '.join(had) or 'none of ' + ', '.join(_FLAGS)}"


def _secret_files(config: Path | None) -> tuple[Path, ...]:
    if config is None:
        return ()
    text = config.read_text(encoding="utf-8")
    references = re.findall(r"""^[^#\n]*["']\$\{file:([^}]+)\}["']""", text, re.MULTILINE)
    named = [Path(name) for name in references]
    return tuple(path for path in named if path.is_file())
