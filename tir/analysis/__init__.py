"""Analyses of one program; nothing here changes it."""

from .block_regions import block_access_region
from .gpu_limits import verify_gpu_code

__all__ = ["block_access_region", "verify_gpu_code"]
