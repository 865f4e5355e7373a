"""Tensor expressions: what is computed, element by element; how, is for schedules.

A graph of immutable operations: ``Operation`` (``axis``, ``reduce_axis``, ``input_tensors``, ``output(i)``,
``with_inputs``) makes ``Tensor``s, which expressions read by ``TensorLoad``; reductions are ``Reduce`` expressions at the
top of a ``ComputeOp``. ``to_primfunc`` makes a block of each operation; ``lower_graph`` says which, and which buffers.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..expr import CommReducer, Reduce
from ..names import did_you_mean
from . import hybrid
from .computation import ComputeOp, compute
from .declared_intrin import TensorIntrinDecl, decl_tensor_intrin
from .extern import ExternOp, extern
from .gradient import gradient
from .recurrence import ScanOp, scan
from .reducers import comm_reducer, max, min, prod, sum
from .schedule import create_schedule
from .tag import tag_scope
from .tensor import (
    Operation,
    PlaceholderOp,
    Tensor,
    TensorLoad,
    TensorSlice,
    placeholder,
    reduce_axis,
    size_var,
    thread_axis,
    var,
)
from .tensor import constant as const
from .to_primfunc import create_prim_func

__all__ = [
    "CommReducer", "ComputeOp", "ExternOp", "Operation", "PlaceholderOp", "Reduce", "ScanOp", "Tensor",
    "TensorIntrinDecl", "TensorLoad", "TensorSlice", "comm_reducer", "compute", "const", "create_prim_func",
    "create_schedule", "decl_tensor_intrin", "extern", "gradient", "hybrid", "max", "min", "placeholder", "prod",
    "reduce_axis", "scan", "size_var", "sum", "tag_scope", "thread_axis", "var",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What builds expressions: ``te.exp``, ``te.if_then_else``, under the names that they have everywhere."""
    package = importlib.import_module("tir")
    if not name.startswith("_") and (name in package.EXPRESSIONS or _is_pure(name)):
        value = globals()[name] = getattr(package, name)
        return value
    near = "" if name.startswith("_") else did_you_mean(name, __all__)
    raise AttributeError(f"module 'tir.te' has no attribute {name!r}{near}")


def __dir__() -> list[str]:
    operators = importlib.import_module("tir.op").OPS
    return sorted({*__all__, *importlib.import_module("tir").EXPRESSIONS, *filter(_is_pure, operators)})


def _is_pure(name: str) -> bool:
    from ..op import OPS

    return name in OPS and OPS[name].effect == "pure"
