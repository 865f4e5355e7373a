"""What an operator may be fused with, and a schedule for it: asked of its function, not written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..analysis.pattern import Pattern
from ..analysis.pattern import pattern as _pattern_of
from ..te.to_primfunc import function_of

if TYPE_CHECKING:
    from ..schedule import Schedule


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
