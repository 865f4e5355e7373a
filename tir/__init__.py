"""tir: a schedulable tensor IR for Python. The public face: names only.

All parts load when first used: the nodes of the language together, each heavy one (NumPy, LLVM, exact sets, the parser)
alone. A command that only lists its verbs needs none.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> (module, attribute): loaded on first use
_LAZY = {
    "Schedule": ("tir.schedule", "Schedule"),
    "Trace": ("tir.schedule", "Trace"),
    "BlockRV": ("tir.schedule", "BlockRV"),
    "LoopRV": ("tir.schedule", "LoopRV"),
    "ExprRV": ("tir.schedule", "ExprRV"),
    "IndexMap": ("tir.arith.index_map", "IndexMap"),
    "TensorIntrin": ("tir.intrin", "TensorIntrin"),
    "structural_equal": ("tir.equal", "structural_equal"),
    "structural_hash": ("tir.equal", "structural_hash"),
    "assert_structural_equal": ("tir.equal", "assert_structural_equal"),
    "fold_constants": ("tir.schedule.constants", "fold_constants"),
    "lower": ("tir.transform.pipeline", "lower"),
    "build": ("codegen.build", "build"),
    "doctor": ("codegen.diagnosis", "doctor"),
    "load": ("tir.saved", "load"),
    "Analyzer": ("tir.arith", "Analyzer"),
    "simplify": ("tir.arith", "simplify"),
    "register_func": ("codegen.runtime.packed_functions", "register_func"),
    "PrimExpr": ("tir.expr", "Expr"),
    "SizeVar": ("tir.expr", "Var"),
    "DataType": ("tir.dtype", "DType"),
    "TVMError": ("tir.errors", "TirError"),
    **{
        name: ("tir.compat", name)
        for name in (
            "array", "compile", "cpu", "cuda", "device", "ir", "nd", "runtime", "CallEffectKind", "ForKind",
            "comm_reducer", "convert",
        )
    },
    "stmt_functor": ("tir.compat", "stmt_functor"),
    "gpu": ("tir.compat", "cuda"),
    "context": ("tir.compat", "device"),
    "autotvm": ("tir.tune", "autotvm"),
    **{
        name: ("tir.te", name)
        for name in (
            "var", "size_var", "placeholder", "compute", "create_schedule", "reduce_axis", "thread_axis", "scan",
            "extern", "hybrid", "decl_tensor_intrin", "sum",
        )
    },
}  # fmt: skip
_BUILDERS = (
    "__version__", "cast", "const", "decl_buffer", "as_expr", "is_const", "compare", "logical_and", "logical_or", "logical_not",
    "all_of", "bit_op", "digits_of", "TRUE", "FALSE",
)  # fmt: skip
_SUBMODULES = (
    "ir_builder", "te", "ops", "extension", "graph", "importers", "script", "schedule", "transform", "arith", "analysis", "cost",
    "interp", "intrin", "library", "torch", "jax", "testing", "tune", "op", "visit",
)  # fmt: skip

# what builds expressions in the dialect builds them outside of it too, under the same name: tir.exp, tir.if_then_else
EXPRESSIONS = frozenset(
    [
        "max_value", "min_value", "infinity", "if_then_else", "all", "any", "min", "max", "abs", "round", "call_intrin",
        "power", "ceildiv", "indexdiv", "indexmod", "floordiv", "floormod", "truncdiv", "truncmod", "div",
        "reinterpret", "logaddexp",
    ]
)  # fmt: skip

if TYPE_CHECKING:
    from codegen.build import build
    from codegen.diagnosis import doctor

    from .arith import Analyzer, simplify
    from .arith.index_map import IndexMap
    from .equal import assert_structural_equal, structural_equal, structural_hash
    from .intrin import TensorIntrin
    from .saved import load
    from .schedule import BlockRV, ExprRV, LoopRV, Schedule, Trace
    from .transform.pipeline import lower


def _with_nodes() -> set[str]:
    """Have the names of the nodes here; gives them."""
    names = vars(importlib.import_module("tir._nodes")).items()
    nodes = {n: v for n, v in names if getattr(v, "__module__", type(v).__module__).startswith("tir.")}
    globals().update(nodes)
    return set(nodes)


def __getattr__(name: str) -> Any:
    with importlib.import_module("tir.collecting").seldom_collected:  # what loading modules makes lives on
        return _loaded(name)


def _loaded(name: str) -> Any:
    if not name.startswith("_") and name not in _LAZY and importlib.util.find_spec(f"tir.{name}") is not None:
        return importlib.import_module(
            f"tir.{name}"
        )  # asked for by modules that import each other before there are nodes
    nodes = _with_nodes()
    if name == "__all__":
        return sorted(nodes.intersection(__dir__()))
    if name in globals():
        return globals()[name]
    if name.startswith("_"):  # what tools look for in modules, and nobody mistyped
        raise AttributeError(f"module 'tir' has no attribute {name!r}")
    if name in ("tir", "s_tir", "tirx"):  # `import tir as tvm` makes tvm.tir this package, and its names of TVM 0.27
        value = importlib.import_module("tir")
    elif name in _LAZY:
        module, attribute = _LAZY[name]
        value = getattr(importlib.import_module(module), attribute)
    elif name in EXPRESSIONS or name in importlib.import_module("tir.op").OPS:
        value = getattr(importlib.import_module("tir.script.tir"), name)
    else:
        here = importlib.import_module("tir.neighbours").written_here(name)
        near = importlib.import_module("tir.names").did_you_mean(name, __dir__())
        raise AttributeError(f"module 'tir' has no attribute {name!r}{near if here is None else f'; write {here}'}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What a user may want: classes and errors, what builds expressions, and what loads on first use."""
    _with_nodes()
    classes = {n for n, v in globals().items() if isinstance(v, type) and v.__module__.startswith("tir.")}
    operators = importlib.import_module("tir.op").OPS
    return sorted({*classes, *_BUILDERS, *_LAZY, *_SUBMODULES, *EXPRESSIONS, *operators})
