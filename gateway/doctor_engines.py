"""`tiergate doctor`'s questions about engines: threads, memory, GPUs.

Sizes are those of the files; what an engine needs exactly it says itself when it is loaded.
"""

from collections.abc import Iterator
from pathlib import Path

from gateway.config import Settings
from gateway.config_clef import ClefEngineSection
from gateway.config_engines import EngineSection
from gateway.doctor_found import Found, finding, fine
from gateway.doctor_machine import Machine

_GIB = 2**30
_SLACK_BYTES = 300 * 2**20
"""About what the process takes besides its weights."""
_OF_BF16 = {"bf16": 1.0, "fp32": 2.0, "int8": 0.5, "fp8": 0.5}
"""Precision → what the weights take at least, as a share of files in bf16."""


def engines_examined(settings: Settings, machine: Machine) -> Iterator[Found]:
    """What there is to say about engines that have not been loaded."""
    yield from _threads(settings, machine)
    yield from _memory(settings, machine)
    yield from _gpu(settings, machine)


def _threads(settings: Settings, machine: Machine) -> Iterator[Found]:
    """More threads than CPUs make every request slower, not more of them possible."""
    said = f"{machine.cpus} CPUs by affinity and quota"
    busy, fits = [], True
    for name, section in settings.engines.items():
        if section.kind == "scripted" or _devices(section):
            continue
        key = "threads" if isinstance(section, ClefEngineSection) else "workers"
        asked = getattr(section, key) or machine.cpus
        if asked > machine.cpus:
            fits = False
            yield finding(
                "threads",
                f"engines.{name}.{key} is {asked}, but there are {said}; set it to 0",
            )
        if asked >= machine.cpus:
            busy.append(name)
    if len(busy) > 1:
        yield finding(
            "threads",
            f"{', '.join(busy)} each use all of {said}; under load they wait for each other, so "
            "give each a part with workers or threads",
        )
    elif fits:
        yield fine("threads", said)


def _memory(settings: Settings, machine: Machine) -> Iterator[Found]:
    on_disk = sum(
        _on_disk_bytes(section) for section in settings.engines.values() if not _devices(section)
    )
    needed = on_disk + settings.limits.max_bodies_bytes + _SLACK_BYTES
    said = f"{machine.memory_bytes / _GIB:.1f} GiB of memory may be used"
    about = f"weights, bodies and the process take about {needed / _GIB:.1f} GiB"
    if needed > machine.memory_bytes:
        yield finding("memory", f"{said}, but {about}; take a smaller model or a larger machine")
    else:
        yield fine("memory", f"{said}; {about}")


def _gpu(settings: Settings, machine: Machine) -> Iterator[Found]:
    wanted = {name: one for name, one in settings.engines.items() if _devices(one)}
    if not wanted:
        yield fine("kernels", f"no GPU is asked for; {machine.kernels}")
        return
    names = ", ".join(wanted)
    if not machine.gpus:
        yield finding("gpu", f"{names} want a GPU, but nvidia-smi shows none")
    else:
        yield fine("gpu", f"{names}: {'; '.join(machine.gpus)}")
    for name, section in wanted.items():
        if missing := machine.lacks_for(section.kind):
            yield finding("gpu", f"engines.{name} cannot use a GPU: {missing}")
    yield from _gpu_memory(wanted, machine.gpu_bytes)


def _gpu_memory(wanted: dict[str, EngineSection], sizes: tuple[int, ...]) -> Iterator[Found]:
    """Whether each GPU could hold the weights that are to be on it; free or not."""
    held: dict[int, int] = {}
    for name, section in wanted.items():
        for device in _devices(section):
            index = int(device.partition(":")[2] or 0)
            held[index] = held.get(index, 0) + _on_device_bytes(section)
            if sizes and index >= len(sizes):
                yield finding(
                    "gpu", f"engines.{name} wants {device}, but the GPUs end at {len(sizes) - 1}"
                )
    for index, needed in sorted(held.items()):
        if index < len(sizes) and needed > sizes[index]:
            yield finding(
                "gpu",
                f"cuda:{index} has {sizes[index] / _GIB:.1f} GiB, but the weights for it alone "
                f"take {needed / _GIB:.1f} GiB; choose another precision, or spread the engines",
            )


def _on_device_bytes(section: EngineSection) -> int:
    """What the weights take of a GPU at least; 0 where that cannot be told from the files."""
    if not isinstance(section, ClefEngineSection):
        return _on_disk_bytes(section)
    if section.tables == "host":
        return 0
    return int(_on_disk_bytes(section) * _OF_BF16[section.precision])


def _on_disk_bytes(section: EngineSection) -> int:
    paths = (getattr(section, "path", None), getattr(section, "multilingual_path", None))
    return sum(_size_of(Path(path)) for path in paths if path)


def _size_of(path: Path) -> int:
    """Bytes of the larger set of weights in a checkpoint's folder: as it came, or as a graph."""
    if path.is_file():
        return path.stat().st_size
    sizes = {".safetensors": 0, ".onnx": 0}
    for one in path.rglob("*"):
        if one.suffix in sizes and one.is_file():
            sizes[one.suffix] += one.stat().st_size
    return max(sizes.values())


def _devices(section: EngineSection) -> tuple[str, ...]:
    """The GPUs that an engine's section asks for."""
    named = (*getattr(section, "devices", ()), getattr(section, "device", ""))
    return tuple(one for one in named if one.startswith("cuda"))
