"""Whether AMX tile registers can be used: the CPU has them, and the operating system permits their use."""

from __future__ import annotations

import ctypes
import functools
import platform
from pathlib import Path

_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18  # the system call, ARCH_REQ_XCOMP_PERM, the state component
_FLAGS = {"bfloat16": "amx_bf16", "int8": "amx_int8"}


@functools.cache
def tiles_allowed() -> bool:
    """Ask the system, once, for this process and its threads; Linux lets them from 5.16 on."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0


@functools.cache
def tiles_available(dtype: str) -> bool:
    """Whether products of tiles of ``dtype`` ("bfloat16" or "int8") run here.

    >>> tiles_available("bfloat16") in (True, False)
    True
    """
    facts = Path("/proc/cpuinfo")
    return facts.exists() and _FLAGS[dtype] in facts.read_text().split() and tiles_allowed()
