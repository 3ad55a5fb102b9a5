"""Clef-flash at full size on a device without memory: shapes are computed, values are not.

Whoever looks at a value there gets an error, as he would wait for a real device.
"""

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engines.clef.backbone import Backbone
from engines.clef.delta import delta_rule
from engines.clef.geometry import Text
from engines.clef.head import DecisionHead
from engines.clef.kernels import Kernels, convolved
from engines.clef.model import Model, Table
from engines.clef.plan import FLASH, FLASH_HEAD

META = torch.device("meta")


def unreal_model(text: Text = FLASH, dtype: torch.dtype = torch.bfloat16) -> Model:
    """A model on the device without memory."""
    with META:
        backbone = Backbone(text).to(dtype).requires_grad_(False)
        head = DecisionHead(FLASH_HEAD).to(dtype).requires_grad_(False)
        rows = torch.empty(text.vocabulary, text.hidden, dtype=dtype)
    table = Table(rows, META, dtype)
    plain = Kernels(delta_rule, convolved)
    return Model(backbone, head, table, table, None, plain, META, dtype)


class Held(TorchDispatchMode):
    """Counts the bytes of tensors that are alive at once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most_bytes = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, Tensor):
                storage = one.untyped_storage()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._alive.setdefault(reference.cdata, (reference, storage.nbytes()))
        self._alive = {
            at: kept
            for at, kept in self._alive.items()
            if not kept[0].expired()  # type: ignore[no-untyped-call]
        }
        self.most_bytes = max(self.most_bytes, sum(size for _, size in self._alive.values()))
        return made


class FromTheHost(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses to compute with tensors of the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for one in tree_leaves((args, kwargs or {})):
            if isinstance(one, Tensor) and not one.is_meta:
                raise AssertionError(f"{func} takes a tensor of the host")
        return func(*args, **(kwargs or {}))


class NoWaits(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what makes the host wait for a device, or look at its values."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func).removeprefix("aten.").partition(".")[0]
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        there = any(one.is_meta for one in tensors)
        chosen = any(one.dtype is torch.bool for one in tensors[1:]) and name.startswith("index")
        if there and (chosen or name in ("nonzero", "masked_select", "_local_scalar_dense")):
            raise AssertionError(f"{func} looks at values of the device")
        made = func(*args, **kwargs)
        crosses = isinstance(made, Tensor) and made.is_meta and name in ("_to_copy", "copy_")
        if crosses and not tensors[-1].is_meta and not kwargs.get("non_blocking"):
            raise AssertionError(f"{func} waits until the device has nothing to do")
        return made


def held_by_its_output(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Attention that holds nothing but its output, as the fused kernels do."""
    return torch.empty_like(query)
