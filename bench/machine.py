"""What the numbers were measured on, without anything that names the machine."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = (
    *("tiergate", "starlette", "uvicorn", "uvloop", "httptools", "orjson", "pydantic"),
    *("pydantic-core", "fastapi", "jevcompat"),
)
_FLAGS = ("avx2", "avx512f", "avx512_vnni", "amx_int8")


def machine() -> dict[str, str]:
    """Word → description: CPU, cores, memory, kernel, Python, packages."""
    cpu = _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or "unknown"
    flags = (_field(Path("/proc/cpuinfo"), "flags") or "").split()
    known = [flag for flag in _FLAGS if flag in flags]
    memory_kib = int((_field(Path("/proc/meminfo"), "MemTotal") or "0").split()[0])
    return {
        "cpu": f"{cpu} ({', '.join(known) or 'no AVX2'})",
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "virtual": "yes" if "hypervisor" in flags else "no",
        "memory": f"{memory_kib / 2**20:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
    }


def load_average() -> str:
    """Running tasks over 1, 5 and 15 minutes, as the kernel counts them."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _field(path: Path, name: str) -> str | None:
    """The first value of a `name : value` line."""
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", path.read_text(), re.MULTILINE)
    return found[1].strip() if found else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
