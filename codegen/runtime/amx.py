"""The operating system's leave to use AMX tile registers, which a process has to ask for."""

from __future__ import annotations

import ctypes
import functools
import platform

from tir.errors import BuildError

_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18  # the system call, ARCH_REQ_XCOMP_PERM, the state component


@functools.cache
def tiles_allowed() -> bool:
    """Ask, once: whether this process and its threads may use tile registers."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0


def request_tiles() -> None:
    """As :func:`tiles_allowed`. Raises ``BuildError`` where it is refused."""
    if not tiles_allowed():
        raise BuildError("the program uses AMX tile registers, and this system does not let it (Linux 5.16 or later does)")
