"""Lowering: small passes over modules, in the order of :func:`cpu_pipeline`.

Every pass is a function ``tir.transform.flatten_buffer(mod)``; ``tir.transform.FlattenBuffer()(mod)`` is the same.
Files here are discovered automatically; what they define with ``@func_pass`` or ``@module_pass`` is a pass. Editors and
type checkers read the names from ``__init__.pyi``, which ``make generated`` writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import extension
from .context import PassContext
from .passes import PASSES, ModulePass, Pass, Sequential, find, func_pass, module_pass
from .pipeline import cpu_pipeline, gpu_pipeline, inserted, lower
from .plan_shared_memory import shared_memory_plan
from .shared_memory_table import SharedMemoryPlan

__all__ = [
    "PASSES", "ModulePass", "Pass", "PassContext", "Sequential", "SharedMemoryPlan", "cpu_pipeline", "find", "func_pass",
    "gpu_pipeline", "inserted", "lower", "module_pass", "shared_memory_plan",
]  # fmt: skip

extension.load_files(__name__)
globals().update(PASSES)  # each instead of the file of its name

__all__.extend(sorted(PASSES))  # pyright: ignore[reportUnsupportedDunderAll]  (the stub says which)


def __getattr__(name: str) -> Callable[..., Any]:
    """``LowerInitBlock(**options)`` gives the pass ``lower_init_block`` with its options set."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if name[:1].isupper():
        if snake not in PASSES:
            extension.load(extension.PASSES)
        if snake in PASSES:
            return PASSES[snake].configured
    fails = extension.missing(extension.PASSES) if name[:1].isupper() else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{fails}")


def __dir__() -> list[str]:
    return sorted({*__all__, *PASSES})
