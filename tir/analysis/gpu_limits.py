"""Whether the kernels of a lowered function are within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from ..arith import Analyzer
from ..function import PrimFunc
from ..launches import bytes_of, is_launch, kernels_of, launches, vector_accesses
from ..levels import THREAD_AXES, is_in_registers, is_shared, is_thread_axis, is_virtual_axis
from ..names import did_you_mean
from ..stmt import Allocate, AttrStmt, Block, For
from ..visit import walk


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Whether all kernels of a lowered function are known to be within limits.

    The limits are those of TVM's function: ``max_threads_per_block``, ``max_thread_x``, ``_y`` and ``_z``, ``max_vthread``,
    ``max_shared_memory_per_block`` and ``max_local_memory_per_block`` (bytes; of a thread's own arrays), ``max_vector_bytes``
    (of one access) and ``max_kernels``. Raises ``ValueError`` for another name, and for a function that is not lowered.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((256,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 256) as tx:
    ...         A[tx] = 1.0
    ... ''')
    >>> [tir.analysis.verify_gpu_code(f, {"max_threads_per_block": n}) for n in (128, 256)]
    [False, True]
    """
    for name in constraints:
        if name not in _NEEDS:
            hint = did_you_mean(name, _NEEDS) or f"; there are {', '.join(_NEEDS)}"
            raise ValueError(f"no limit of a kernel is called {name!r}{hint}")
    if any(isinstance(n, Block) or (isinstance(n, For) and n.thread) for n in walk(func.body)):
        raise ValueError(f"{func.name} is not lowered: its kernels are known after tir.lower(f, target=...)")
    kernels = kernels_of(func.body)
    if len(kernels) > constraints.get("max_kernels", len(kernels)):
        return False
    needs = [(limit, _NEEDS[name](kernel)) for kernel in kernels for name, limit in constraints.items()]
    return all(need is not None and need <= limit for limit, need in needs)


def _most(extent: Any) -> int | None:
    return 1 if extent is None else Analyzer().bound(extent)[1]


def _threads(kernel: Any) -> int | None:
    sizes = [_most(e) for axis, e in launches(kernel).items() if is_thread_axis(axis)]
    return None if None in sizes else prod(sizes)  # type: ignore[arg-type]


def _along(axis: str) -> Callable[[Any], int | None]:
    return lambda kernel: _most(launches(kernel).get(axis))


def _virtual_threads(kernel: Any) -> int | None:
    sizes = [_most(n.value) for n in walk(kernel) if isinstance(n, AttrStmt) and is_launch(n, is_virtual_axis)]
    return None if None in sizes else max(sizes, default=1)  # type: ignore[type-var]


def _memory(counts: Callable[[str], bool]) -> Callable[[Any], int]:
    return lambda kernel: sum(
        bytes_of(a) for a in walk(kernel) if isinstance(a, Allocate) and counts(a.buffer_var.scope)
    )


def _vector_bytes(kernel: Any) -> int:
    return max((size for _, size in vector_accesses(kernel)), default=0)


_NEEDS: dict[str, Callable[[Any], int | None]] = {
    "max_threads_per_block": _threads,
    **{f"max_thread_{axis[-1]}": _along(axis) for axis in THREAD_AXES},
    "max_vthread": _virtual_threads,
    "max_shared_memory_per_block": _memory(is_shared),
    "max_local_memory_per_block": _memory(is_in_registers),
    "max_vector_bytes": _vector_bytes,
    "max_kernels": lambda kernel: 1,
}
