"""Schedules found for you: ``default`` at once, by rules and a model; ``tir.tune(mod)`` by measuring candidates.

>>> import tir
>>> from tir.library import rows
>>> sch = tir.tune.default(rows.softmax(64, 100))
>>> bool(sch.trace)
True
"""

from __future__ import annotations

import importlib
from typing import Any

# name -> (module, attribute): loaded on first use
_LAZY = {
    "Env": ("tir.tune.space", "Env"),
    "rule": ("tir.tune.space", "rule"),
    "default": ("tir.tune.default", "default"),
}
_SUBMODULES = ("space", "nest", "rules")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        value = getattr(importlib.import_module(module), attribute)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"tir.tune.{name}")
    else:
        raise AttributeError(f"module 'tir.tune' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_SUBMODULES})
