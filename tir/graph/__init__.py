"""Whole models: graphs of the operators of ``tir.ops``, and one lowered module made of them.

>>> import numpy as np
>>> from tir.graph import Builder, compile_graph
>>> b = Builder()
>>> x = b.input("x", (2, 3))
>>> model = compile_graph(b.graph({"y": b.call("exp", b.call("negative", x))}), "interpreter")
>>> model(np.zeros((2, 3), "float32")).tolist(), model.kernels
([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], ('negative_exp',))
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Public names load on first use, all at once: a compiled model that is found in the disk cache needs none of what compiles it."""
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    public = importlib.import_module(f"{__name__}._public")
    if name not in ("__all__", *public.__all__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(public, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
