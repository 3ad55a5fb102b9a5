"""The vision tower: patches of images to tokens, by the library's own module."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.clef.geometry import Vision
from engines.clef.prompt import Picture
from engines.clef.refusals import CheckpointError

_MODULE = "transformers.models.qwen3_5.modeling_qwen3_5"
_CONFIGURATION = "transformers.models.qwen3_5.configuration_qwen3_5"


class Tower:
    """The tower with its weights."""

    def __init__(
        self,
        vision: Vision,
        weights: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Builds the module and fills it.

        Raises:
            CheckpointError: the tensors are not those of this tower.
            ImportError: transformers is not installed.
        """
        config = importlib.import_module(_CONFIGURATION).Qwen3_5VisionConfig(**vision.config)
        config._attn_implementation = "sdpa"
        module: Any = importlib.import_module(_MODULE).Qwen3_5VisionModel(config)
        try:
            module.load_state_dict(dict(weights), strict=True)
        except RuntimeError as error:
            raise CheckpointError(
                f"the vision tower does not fit its configuration: {error}"
            ) from error
        module = module.to(device).eval().requires_grad_(False)
        for parameter in module.parameters():  # and not its buffers: frequencies keep their bits
            parameter.data = parameter.data.to(dtype)
        self._module = module
        self._device, self._dtype = device, dtype
        self._vision = vision

    def tokens(self, pictures: Sequence[Picture]) -> list[Tensor]:
        """For each picture the hidden states of its tokens, [tokens, hidden]."""
        patches = [np.frombuffer(one.patches, np.float32) for one in pictures]
        grid = torch.tensor([[1, one.rows, one.columns] for one in pictures])
        count = int(grid.prod(1).sum())
        values = torch.from_numpy(np.concatenate(patches)).reshape(count, -1)
        found = self._module(values.to(self._device, self._dtype), grid.to(self._device))
        merged: Tensor = found.pooler_output
        return list(torch.split(merged, [one.tokens for one in pictures]))
