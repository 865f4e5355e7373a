"""Refuses loops bound to thread axes, which a CPU does not have."""

from __future__ import annotations

from ..errors import BuildError
from ..function import PrimFunc
from ..stmt import AttrStmt, For
from ..visit import statements
from .passes import func_pass


@func_pass
def reject_thread_axes(func: PrimFunc) -> PrimFunc:
    """Raises ``BuildError`` with the loop and the axis if a loop is bound to a GPU thread axis.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for i in T.thread_binding(8, thread="threadIdx.x"):
    ...         A[i] = 1.0
    ... ''')
    >>> tir.transform.reject_thread_axes(f)
    Traceback (most recent call last):
        ...
    tir.errors.BuildError: f: loop `i` is bound to the thread axis 'threadIdx.x': thread axes need a GPU target; use parallel instead of bind
    """
    for n in statements(func.body):
        if isinstance(n, For) and n.kind == "thread_binding":
            raise BuildError(
                f"{func.name}: loop `{n.loop_var.name}` is bound to the thread axis {n.thread!r}: thread axes need a "
                "GPU target; use parallel instead of bind"
            )
        if isinstance(n, AttrStmt) and n.attr_key == "thread_extent":
            raise BuildError(
                f"{func.name}: the thread axis {n.node.thread_tag!r} is launched: thread axes need a GPU target"
            )
    return func
