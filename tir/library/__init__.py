"""Programs to begin with: products, convolutions, attention, rows of a matrix, elementwise chains, of the sizes given.

``tir.tune.default`` schedules them, as it does any program.

>>> import tir
>>> from tir.library import gemm
>>> sch = tir.tune.default(gemm.gemm(64, 48, 32))
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import attention, conv, elementwise, gemm, rows

__all__ = ["attention", "conv", "elementwise", "gemm", "rows"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
