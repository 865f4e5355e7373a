"""Refuses kernels in which a thread reads memory private to others, or blocks depend on each other."""

from __future__ import annotations

from ..aliases import in_own_memory, with_one_memory
from ..errors import BuildError
from ..expr import BufferLoad
from ..function import PrimFunc
from ..levels import is_fragment
from ..stmt import BlockRealize, BufferStore
from ..visit import walk
from .passes import func_pass


def _refuse_elements_of_fragments(func: PrimFunc) -> None:
    """Refuse accesses to elements of ``wmma`` fragments, whose lane is undefined, outside of intrinsics."""
    for realize in walk(func.body):
        if not isinstance(realize, BlockRealize) or any(isinstance(n, BlockRealize) for n in walk(realize.block.body)):
            continue
        for n in walk(realize.block):
            if isinstance(n, (BufferLoad, BufferStore)) and is_fragment(n.buffer.scope):
                raise BuildError(
                    f"{func.name}: block `{realize.block.name}` accesses an element of `{n.buffer.name}` in "
                    f"{n.buffer.scope} memory, and which lane holds it is not defined; tensorize the block, or give the "
                    "buffer another scope"
                )


@func_pass
def check_thread_memory(func: PrimFunc) -> PrimFunc:
    """A check; changes nothing. Raises ``BuildError`` with a witness if memory private to a thread or a block is read
    by another, if thread blocks of one kernel depend on each other, if threads write different values to one element of
    shared memory at once, or if an element of a fragment is accessed. Schedules refuse the steps that provably lead
    there.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(B: T.Buffer((8,), "float32")):
    ...     R = T.alloc_buffer((1,), "float32", scope="local")
    ...     for i in T.thread_binding(8, thread="threadIdx.x"):
    ...         with T.block("R"):
    ...             T.where(i == 0)
    ...             R[0] = 1.0
    ...     for i in T.thread_binding(8, thread="threadIdx.x"):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = R[0]
    ... ''')
    >>> tir.transform.check_thread_memory(f)
    Traceback (most recent call last):
        ...
    tir.errors.BuildError: f: `R` (local memory) would be used by two kernels, which share global memory only
      R writes it in the kernel of loop i, B uses it in that of loop i
      5 |     # with T.block("root"):
      6 |     R = T.alloc_buffer((1,), "float32", scope="local")
      7 |     for i in T.thread_binding(8, thread="threadIdx.x"):
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
      8 |         with T.block("R"):
    ... |
     11 |             T.writes(R[0])
     12 |             R[0] = T.float32(1)
     13 |     for i in T.thread_binding(8, thread="threadIdx.x"):
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
     14 |         with T.block("B"):
    legal: compute_at("R", …) in the other kernel, or set_scope("R", …, "global")
    """
    from ..schedule.invariants import shared_writes, thread_memory

    if func.root is not None:
        _refuse_elements_of_fragments(func)
        one = with_one_memory(func)
        for invariant in (thread_memory, shared_writes):
            for problem in invariant.problems_when_complete(one):
                raise BuildError(f"{func.name}: {in_own_memory(problem.error(one))}")
    return func
