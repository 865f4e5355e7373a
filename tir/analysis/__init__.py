"""Analyses of one program; nothing here changes it."""

from .gpu_limits import verify_gpu_code

__all__ = ["verify_gpu_code"]
