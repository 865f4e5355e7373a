"""The memory that copy engines and tensor cores access by themselves, beside the threads of a block."""

from __future__ import annotations

from typing import Any

from ..analysis.effects import effects
from ..expr import Call, Var
from ..levels import is_shared
from ..op import OPS
from ..visit import walk

ALIGNMENT = 1024  # bytes: the widest pattern of a swizzle, with which boxes and matrices lie in shared memory


def orders_itself(kernel: Any) -> bool:
    """Whether a kernel has transaction barriers: it is written by hand, and says itself which threads wait for which."""
    return any(isinstance(n, Call) and n.op == "create_barriers" for n in walk(kernel))


def engine_memory(body: Any) -> frozenset[Var]:
    """The pointers of shared memory that operators in ``body`` access through what the program orders itself
    (``tir.op.Pointer.ordered``). It begins at a multiple of ``ALIGNMENT``, and is in use as long as the kernel runs: its
    accesses end when a barrier or a group says so, not with the statement.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((64, 64), "float16")):
    ...     tx = T.launch_thread("threadIdx.x", 32)
    ...     S = T.allocate([4096], "float16", "shared")
    ...     if tx == 0:
    ...         T.ptx_cp_async_bulk_tensor(S, 0, T.tensor_map(A, (64, 64)), 0, 0, 0)
    ... ''')
    >>> [v.name for v in engine_memory(f.body)]
    ['S']
    """
    found = set[Var]()
    for e in effects(body):
        op = None if e.through is None else OPS.get(e.through[0].op)
        if op is not None and e.through is not None and op.pointer(e.through[1]).ordered:
            found.add(e.buffer.data)
    return frozenset(v for v in found if is_shared(v.scope))
