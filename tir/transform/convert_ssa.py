"""Each variable is defined at one place."""

from __future__ import annotations

from ..analysis.own_definitions import with_own_definitions
from ..function import PrimFunc
from .passes import func_pass


@func_pass
def convert_ssa(func: PrimFunc) -> PrimFunc:
    """Each variable and buffer is defined at one place: what is defined again gets a new variable, or buffer, there.

    Loops, lets, allocations, iterators, views and thread axes one after the other may share a variable, as programs made
    by hand from one statement used twice do. A thread axis that a kernel launches again inside itself stays the one.

    In no pipeline: it is given by ``insert=``, or by a pass context.

    >>> import tir
    >>> i = tir.Var("i", "int32")
    >>> loop = tir.For(i, tir.IntImm(0), tir.IntImm(4), "serial", tir.Evaluate(i))
    >>> f = tir.PrimFunc((), tir.SeqStmt((loop, loop)))
    >>> first, second = tir.transform.convert_ssa(f).body.stmts
    >>> first.loop_var is second.loop_var
    False
    """
    return with_own_definitions(func)
