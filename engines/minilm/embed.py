"""Token rows to unit vectors with all-MiniLM-L6-v2 in ONNX; one row a run, never padded.

The graph keeps its weights in 8 bits and unpacks them to float32 when it is opened. Float products
may round differently with the number of rows in them, so a row that shared a run could read
differently from the same row alone. By itself in its run it depends on itself only, bit for bit.
"""

import numpy as np
from numpy.typing import NDArray

from engines.contract import Broken
from engines.runtime import onnxruntime

Vector = NDArray[np.float32]
"""float32[384], length 1."""


class Embedder:
    """A session of one thread that any number of threads may share."""

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: onnxruntime.InferenceSession | None = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def vector(self, ids: NDArray[np.int64]) -> Vector:
        """The mean over the row's last hidden states, scaled to length 1; float32[384].

        Raises:
            Broken: the embedder is closed, or the model gave something that is no number.
        """
        session = self._session
        if session is None:
            raise Broken("the embedded encoder is closed")
        row = ids.reshape(1, -1)
        (hidden,) = session.run(
            ["last_hidden_state"],
            {
                "input_ids": row,
                "attention_mask": np.ones_like(row),
                "token_type_ids": np.zeros_like(row),
            },
        )
        mean: Vector = hidden[0].mean(axis=0, dtype=np.float32)
        length = float(np.linalg.norm(mean))
        if not (np.isfinite(length) and length > 0.0):
            raise Broken("the embedded encoder gave a vector that is no number")
        return mean / np.float32(length)

    def close(self) -> None:
        """Drop the weights; running reads finish, later ones are `Broken`."""
        self._session = None
