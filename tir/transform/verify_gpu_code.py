"""Refuses kernels that the target cannot launch, with advice."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..errors import BuildError
from ..expr import Call, constant
from ..function import PrimFunc
from ..launches import kernels_of, launches, vector_accesses
from ..levels import is_thread_axis
from ..op import OF_WARPS
from ..stmt import BufferStore, For, IfThenElse, While
from ..target import Target
from .layout import product
from .passes import func_pass

_MOST = {"threadIdx.z": 64, "blockIdx.y": 65535, "blockIdx.z": 65535, "blockIdx.x": 2**31 - 1}
VECTOR_BYTES = 16


def _check_threads(name: str, extents: dict[str, Any], target: Target) -> None:
    limit = target.limit("max_threads_per_block") or 1024
    threads = {axis: n for axis, e in extents.items() if is_thread_axis(axis) and (n := constant(e)) is not None}
    total = 1
    for n in threads.values():
        total *= n
    if total > limit:
        text = " x ".join(f"{n} ({axis})" for axis, n in threads.items())
        raise BuildError(f"{name}: {total} threads in a block, {text}, exceed the limit of {limit}; split by less")
    for axis, most in _MOST.items():
        n = constant(extents.get(axis))
        if n is not None and n > most:
            raise BuildError(f"{name}: {axis} is launched with {n}, the limit is {most}; split it over another axis")
    for axis, e in extents.items():
        if is_thread_axis(axis) and constant(e) is None and Analyzer().bound(e)[1] is None:
            raise BuildError(f"{name}: {axis} has the extent `{e!r}`; a block needs a number of threads known here")


def _check_warps(name: str, kernel: Any) -> None:
    """Refuse operators of whole warps where a warp is certainly not whole; under a condition, only the simulator checks it."""
    total = constant(product(e for axis, e in launches(kernel).items() if is_thread_axis(axis)))
    if total is None or total % 32 == 0:
        return
    left = [kernel]
    for n in left:  # which grows
        if isinstance(n, Call) and n.op in OF_WARPS:
            raise BuildError(
                f"{name}: {n.op} takes all 32 threads of a warp, and the last warp of a block of {total} has {total % 32}: bind loops to "
                "threadIdx.x, so that the threads of a block are a multiple of 32"
            )
        chosen = isinstance(n, (IfThenElse, While)) or (isinstance(n, For) and constant(n.extent) is None)
        left += () if chosen and total > 32 else n.children()


def _check_vectors(name: str, kernel: Any) -> None:
    for a, size in vector_accesses(kernel):
        if size > VECTOR_BYTES:
            what = "store" if isinstance(a, BufferStore) else "load"
            raise BuildError(
                f"{name}: a {what} of {size // a.buffer.dtype.bytes} x {a.buffer.dtype} at `{a.buffer.name}` is wider than "
                f"the {VECTOR_BYTES} bytes that a thread moves at once; vectorize a loop of at most "
                f"{VECTOR_BYTES // a.buffer.dtype.bytes}"
            )


@func_pass
def verify_gpu_code(func: PrimFunc, target: Any = "cuda") -> PrimFunc:
    """The function itself, when all its kernels are within the target's limits.

    Raises ``BuildError`` for too many threads in a block or blocks in a grid, an unknown number of threads, operators of
    tensor cores in a block that has no whole warps, and vector accesses wider than 16 bytes. Shared memory is checked when it is planned (:func:`plan_shared_memory`).

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((2048,), "float32")):
    ...     with T.launch_thread("threadIdx.x", 2048) as tx:
    ...         A[tx] = 1.0
    ... ''')
    >>> tir.transform.verify_gpu_code(f)
    Traceback (most recent call last):
        ...
    tir.errors.BuildError: f: 2048 threads in a block, 2048 (threadIdx.x), exceed the limit of 1024; split by less
    """
    where = Target.of(target)
    for kernel in kernels_of(func.body):
        _check_threads(func.name, launches(kernel), where)
        _check_warps(func.name, kernel)
        _check_vectors(func.name, kernel)
    return func
