"""Programs with their schedules, ready to build: each has a function that makes the program and one that schedules it.

>>> import tir
>>> from tir.library import gemm
>>> sch = gemm.schedule_gemm(tir.Schedule(gemm.gemm(64, 48, 32)))
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import attention, conv, conv_nchw, dot_gemm, elementwise, gemm, gemv, rows

__all__ = [
    "attention",
    "conv",
    "conv_nchw",
    "dot_gemm",
    "elementwise",
    "gemm",
    "gemv",
    "rows",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
