"""What an operator may be fused with, and a schedule for it: asked of its function, not written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import te
from ..analysis.pattern import Pattern
from ..analysis.pattern import pattern as _pattern_of
from ..function import PrimFunc
from ..te import Tensor
from ..te.places import error
from ..te.tensor import PlaceholderOp, operations_of

if TYPE_CHECKING:
    from ..schedule import Schedule


def function_of(made: Any, name: str = "main") -> PrimFunc:
    """The function of a tensor, or of several: its parameters are the inputs, in order of use, and the results.

    A function is given back as it is.

    >>> from tir import ops, te
    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> [b.name for b in function_of(ops.add(A, B)).buffers()]
    ['A', 'B', 'add']
    """
    if isinstance(made, PrimFunc):
        return made
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    if not outputs or not all(isinstance(t, Tensor) for t in outputs):
        raise error(f"a tensor, a list of tensors or a function is needed, not {made!r}")
    inputs = [op.output(0) for op in operations_of(outputs) if isinstance(op, PlaceholderOp)]
    return te.create_prim_func([*inputs, *outputs], name)


def pattern(made: Any) -> Pattern:
    """How elements of tensors, or of a function, depend on its inputs: elementwise, broadcast, injective, reduction,
    out-fusable or opaque (:class:`tir.analysis.pattern.Pattern`). Computed from the blocks.

    >>> from tir import ops, te
    >>> A = te.placeholder((4, 8), name="A")
    >>> [ops.pattern(t).name for t in (ops.exp(A), ops.sum(A, axis=1), ops.cumsum(A))]
    ['ELEMENTWISE', 'REDUCTION', 'OPAQUE']
    """
    return _pattern_of(function_of(made))


def schedule(made: Any, target: Any = "llvm") -> Schedule:
    """A schedule of the function of tensors for ``target``: that of ``tir.tune.default``.

    >>> from tir import ops, te
    >>> sch = ops.schedule(ops.add(te.placeholder((1000,)), 1.0))
    >>> bool(sch.trace)
    True
    """
    from ..tune import default

    return default(function_of(made), target)  # pyright: ignore[reportCallIssue]  (not the file of its name)
