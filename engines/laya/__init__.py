"""Laya checkpoints on ONNX Runtime: a small encoder that reads one row of tokens per question."""
