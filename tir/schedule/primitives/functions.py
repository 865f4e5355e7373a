"""Which function of a module the next steps are about."""

from __future__ import annotations

from ...errors import require
from ...names import near_names
from ..invariants import Keeps
from ..primitive import primitive
from ..state import State


@primitive(keeps=Keeps.ACCESSES | Keeps.KERNELS | Keeps.LOOPS)
def work_on(state: State, func_name: str) -> State:
    """Look names up in the function ``func_name`` from now on.

    Of a module without ``main``, a name that several functions have is refused until then. A step like any other, so that the trace replays on modules of several functions. Handles go on standing for what
    they stood for. Raises ``ScheduleError`` when there is no such function.

    >>> import tir
    >>> zero = tir.script.parse('''
    ... @T.prim_func
    ... def zero(A: T.Buffer((4,), "float32")):
    ...     for i in range(4):
    ...         with T.block("A"):
    ...             vi = T.axis.spatial(4, i)
    ...             A[vi] = T.float32(0)
    ... ''')
    >>> sch = tir.Schedule(tir.IRModule({"zero": zero, "again": zero}))
    >>> sch.work_on("again")
    >>> sch.func_working_on
    'again'
    """
    require(func_name in state.mod,
            "no function `{0}` in the module", func_name, legal=lambda: near_names(func_name, state.mod))  # fmt: skip
    return state.replaced(func_name=func_name, is_chosen=True)
