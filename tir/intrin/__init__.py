"""Tensor intrinsics, by hardware family."""

from .tensor_intrin import TensorIntrin

__all__ = ["TensorIntrin"]
