"""Analyses of one program; nothing here changes it."""

from .kernels import verify_gpu_code

__all__ = ["verify_gpu_code"]
