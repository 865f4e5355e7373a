"""Analyses of one program; nothing here changes it."""

from .footprint import Footprint, Machine, footprint
from .kernels import verify_gpu_code

__all__ = ["Footprint", "Machine", "footprint", "verify_gpu_code"]
