"""Tensor expressions: what is computed, element by element; how, is for schedules.

A graph of immutable operations: ``Operation`` (``axis``, ``reduce_axis``, ``input_tensors``, ``output(i)``,
``with_inputs``) makes ``Tensor``s, which expressions read by ``TensorLoad``; reductions are ``Reduce`` expressions at the
top of a ``ComputeOp``. ``to_primfunc`` makes a block of each operation; ``lower_graph`` says which, and which buffers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import TensorExpressionError
from ..expr import CommReducer, Reduce
from ..names import did_you_mean
from . import hybrid
from .computation import ComputeOp, compute
from .declared_intrin import TensorIntrinDecl, decl_tensor_intrin
from .extern import ExternOp, extern
from .gradient import gradient
from .recurrence import ScanOp, scan
from .reducers import Reducer, comm_reducer, max, min, prod, sum
from .schedule import create_schedule
from .symbolic_sizes import at_most, equate, equate_shapes, is_multiple, requirements
from .tag import tag_scope
from .tensor import (
    Operation,
    PlaceholderOp,
    Tensor,
    TensorLoad,
    TensorSlice,
    as_size,
    data_type,
    placeholder,
    reduce_axis,
    size_var,
    thread_axis,
    var,
)
from .tensor import constant as const
from .to_primfunc import create_prim_func, function_of
from .user_lines import error, user_place, users_errors

if TYPE_CHECKING:
    from .patterns import Pattern, pattern

__all__ = [
    "CommReducer", "ComputeOp", "ExternOp", "Operation", "Pattern", "PlaceholderOp", "Reduce", "Reducer", "ScanOp", "Tensor",
    "TensorExpressionError", "TensorIntrinDecl", "TensorLoad", "TensorSlice", "as_size", "at_most", "comm_reducer",
    "compute", "const", "create_prim_func", "create_schedule", "data_type", "decl_tensor_intrin", "equate",
    "equate_shapes", "error", "extern", "function_of", "gradient", "hybrid", "is_multiple", "max", "min", "pattern",
    "placeholder", "prod", "reduce_axis", "requirements", "scan", "size_var", "sum", "tag_scope", "thread_axis",
    "user_place", "users_errors", "var",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What builds expressions: ``te.exp``, ``te.if_then_else``, under the names that they have everywhere; and what analyses load for."""
    if name in ("Pattern", "pattern"):
        return getattr(importlib.import_module("tir.te.patterns"), name)
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
