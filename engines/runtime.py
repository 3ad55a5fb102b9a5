"""ONNX Runtime, told before it wakes to send nothing to its maker.

Since 1.29 its own builds write an identifier of the machine below the home directory and send
events about sessions and models to Microsoft, unless the environment forbids it before the first
import. So nothing else imports `onnxruntime`; child processes inherit what is set here.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime

__all__ = ["onnxruntime"]
