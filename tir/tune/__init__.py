"""Schedules found for you: ``default`` at once, by rules and a model; ``tir.tune(mod)`` by measuring candidates.

>>> import tir
>>> from tir.library import rows
>>> sch = tir.tune.default(rows.softmax(64, 100))
>>> bool(sch.trace)
True
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

# name -> (module, attribute): loaded on first use
_LAZY = {
    "Env": ("tir.tune.space", "Env"),
    "rule": ("tir.tune.space", "rule"),
    "choose": ("tir.tune.space", "choose"),
    "remove": ("tir.tune.space", "remove"),
    "Nest": ("tir.tune.nest", "Nest"),
    "default": ("tir.tune.default", "default"),
    "predict": ("tir.tune.cost_model", "predict"),
    "tune": ("tir.tune.session", "tune"),
    "apply_best": ("tir.tune.session", "apply_best"),
    "extract_tasks": ("tir.tune.tasks", "extract_tasks"),
    "Records": ("tir.tune.records", "Records"),
    "LocalRunner": ("tir.tune.runner", "LocalRunner"),
    "Measurement": ("tir.tune.runner", "Measurement"),
    "Result": ("tir.tune.result", "Result"),
    "explain": ("tir.tune.explain", "explain"),
    "template": ("tir.tune.template", "template"),
    "DaskRunner": ("tir.tune.dask_runner", "DaskRunner"),
}
_SUBMODULES = ("space", "nest", "rules", "autotvm")


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
    return sorted({*_LAZY, *_SUBMODULES})


class _Tune(types.ModuleType):
    """A package that is a function too: ``tir.tune(mod)``."""

    def __call__(self, mod: Any, *args: Any, **named: Any) -> Any:
        """:func:`tir.tune.session.tune` of a program; of a model (all that ``tir.compile`` takes), :func:`tir.graph.tuning.tune_graph`."""
        from ..compat import graph_of

        graph = graph_of(mod)
        if graph is None:
            return self.tune(mod, *args, **named)
        from ..graph.tuning import tune_graph

        return tune_graph(graph, *args, **named)

    def __setattr__(self, name: str, value: Any) -> None:
        """A submodule does not hide a function of its name, such as ``default``."""
        if not (isinstance(value, types.ModuleType) and name in _LAZY):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Tune
