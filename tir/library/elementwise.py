"""Memory-bound programs: chains of elementwise operations, transposition, a two-stage blur.

Their schedules read and write memory once, in whole cache lines.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..schedule import Schedule
from ..script import tir as T
from ..target import streams, vector_registers
from .rows import stream, vectorize_by

SQUARE = 16  # of a transposed tile: a vector of float32 each way


def gelu_chain(size: int) -> PrimFunc:
    """B = gelu(A * S + H) for float32 A, S, H, B (size,), with gelu(x) = x / 2 * (1 + erf(x / sqrt 2)), in four steps.

    >>> [b.name for b in gelu_chain(10).buffers()]
    ['A', 'S', 'H', 'B']
    """

    @T.prim_func
    def gelu_chain(
        A: T.Buffer((size,), "float32"),
        S: T.Buffer((size,), "float32"),
        H: T.Buffer((size,), "float32"),
        B: T.Buffer((size,), "float32"),
    ):
        scaled = T.alloc_buffer((size,), "float32")
        shifted = T.alloc_buffer((size,), "float32")
        error = T.alloc_buffer((size,), "float32")
        for i in range(size):
            with T.block("scaled"):
                vi = T.axis.spatial(size, i)
                scaled[vi] = A[vi] * S[vi]
        for i in range(size):
            with T.block("shifted"):
                vi = T.axis.spatial(size, i)
                shifted[vi] = scaled[vi] + H[vi]
        for i in range(size):
            with T.block("error"):
                vi = T.axis.spatial(size, i)
                error[vi] = T.erf(shifted[vi] * T.float32(0.7071067811865476))
        for i in range(size):
            with T.block("out"):
                vi = T.axis.spatial(size, i)
                B[vi] = shifted[vi] * T.float32(0.5) * (error[vi] + T.float32(1))

    return gelu_chain


def schedule_gelu_chain(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`gelu_chain`: all steps fused in one vectorized loop.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = elementwise.schedule_gelu_chain(tir.Schedule(elementwise.gelu_chain(1024)))
    >>> len(sch.history) > 1
    True
    """
    for block in ("scaled", "shifted", "error"):
        sch.compute_inline(block)
    return _one_loop(sch, parallel)


def scale_add(size: int) -> PrimFunc:
    """B = A * 3 + 1 for float32 A, B (size,).

    >>> [b.name for b in scale_add(10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def scale_add(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
        for i in range(size):
            with T.block("out"):
                vi = T.axis.spatial(size, i)
                B[vi] = A[vi] * T.float32(3) + T.float32(1)

    return scale_add


def schedule_scale_add(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`scale_add`: vectors, four at a time.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = elementwise.schedule_scale_add(tir.Schedule(elementwise.scale_add(1024)))
    >>> len(sch.history) > 1
    True
    """
    return _one_loop(sch, parallel)


def _one_loop(sch: Schedule, parallel: bool) -> Schedule:
    (loop,) = sch.get_loops("out")
    size = sch.get(loop).extent.value
    if parallel:
        outer, loop = sch.split(loop, [None, 1 << 14])
        sch.parallel(outer)
    vectorize_by(sch, loop)
    stream(sch, sch.get_loops("out")[0], size)
    return sch


def transpose(rows: int, columns: int) -> PrimFunc:
    """B[j, i] = A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in transpose(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def transpose(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((columns, rows), "float32")):
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]

    return transpose


def schedule_transpose(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`transpose`: square tiles transposed in registers; small loops for the remainder.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = elementwise.schedule_transpose(tir.Schedule(elementwise.transpose(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    from ..intrin import x86

    i, j = sch.get_loops("out")
    rows, columns = (sch.get(loop).extent.value // SQUARE * SQUARE for loop in (i, j))
    if not (rows and columns):
        return sch
    if rows < sch.get(i).extent.value:
        i, _ = sch.loop_partition(i, [rows, None])
    if columns < sch.get(j).extent.value:
        sch.loop_partition(sch.get_loops("out")[1], [columns, None])
        sch.fission(i)
    i, j = sch.get_loops("out")
    large = streams(rows * columns)
    io, im, ii = sch.split(i, [None, 1 if large else _few(rows // SQUARE), SQUARE])
    jo, jm, ji = sch.split(j, [None, 1 if large else _few(columns // SQUARE), SQUARE])
    outer, inner = (io, jo) if large else (jo, io)  # rows of A are read in order, lines of B stored non-temporally
    sch.reorder(outer, inner, jm, im, ii, ji)
    if large:
        sch.annotate(outer, "pragma_nontemporal_lines", "B")
    if parallel:
        sch.parallel(outer)
    sch.tensorize(ii, x86.TRANSPOSE_16)
    return sch


def _few(tiles: int) -> int:
    """The number of adjacent tiles in a group that divides ``tiles``: a group's rows share pages and cache lines."""
    return next(f for f in (4, 3, 2, 1) if tiles % f == 0)


def blur(height: int, width: int) -> PrimFunc:
    """The mean of 3 by 3 neighbours of float32 A (height + 2, width + 2), along x and then along y.

    >>> [b.name for b in blur(8, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def blur(A: T.Buffer((height + 2, width + 2), "float32"), B: T.Buffer((height, width), "float32")):
        along = T.alloc_buffer((height + 2, width), "float32")
        for y, x in T.grid(height + 2, width):
            with T.block("along"):
                vy, vx = T.axis.remap("SS", [y, x])
                along[vy, vx] = (A[vy, vx] + A[vy, vx + 1] + A[vy, vx + 2]) * T.float32(1 / 3)
        for y, x in T.grid(height, width):
            with T.block("out"):
                vy, vx = T.axis.remap("SS", [y, x])
                B[vy, vx] = (along[vy, vx] + along[vy + 1, vx] + along[vy + 2, vx]) * T.float32(1 / 3)

    return blur


def schedule_blur(sch: Schedule, strip: int = 32, parallel: bool = False) -> Schedule:
    """Schedule :func:`blur`: strips of ``strip`` rows; the first stage is computed for a strip while it is in the cache.

    ``strip`` is the maximum; strips of equal height, which need memory for only one of them, are used if possible. If
    strips or rows do not divide evenly among the threads, the first stage is recomputed for each result.

    >>> import tir
    >>> from tir.library import elementwise
    >>> sch = elementwise.schedule_blur(tir.Schedule(elementwise.blur(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    y, x = sch.get_loops("out")
    height, width = (sch.get(loop).extent.value for loop in (y, x))
    even = next(s for s in range(min(strip, height), 0, -1) if height % s == 0)
    if even >= 8:
        strip = even
    outer, _ = sch.split(y, [None, strip])
    blocks = ["along", "out"]
    if parallel:
        sch.parallel(outer)
    if parallel and (height % strip or width % (4 * vector_registers().lanes())):
        sch.compute_inline("along")
        blocks = ["out"]
    else:
        sch.compute_at("along", outer)
    for block in blocks:
        vectorize_by(sch, sch.get_loops(block)[-1])
    stream(sch, outer, height * width)
    return sch
