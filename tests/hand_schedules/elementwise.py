"""Schedules of the library's memory-bound programs: they read and write memory once, in whole cache lines."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.library.elementwise import blur as blur
from tir.library.elementwise import gelu_chain as gelu_chain
from tir.library.elementwise import scale_add as scale_add
from tir.library.elementwise import transpose as transpose
from tir.schedule import Schedule
from tir.target import streams, vector_registers

from .rows import stream, vectorize_by

SQUARE = 16  # of a transposed tile: a vector of float32 each way


def schedule_gelu_chain(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`gelu_chain`: all steps fused in one vectorized loop."""
    for block in ("scaled", "shifted", "error"):
        sch.compute_inline(block)
    return _one_loop(sch, parallel)


def schedule_scale_add(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`scale_add`: vectors, four at a time."""
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


def schedule_transpose(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`transpose`: square tiles transposed in registers; small loops for the remainder."""
    from tir.intrin import x86

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


def schedule_blur(sch: Schedule, strip: int = 32, parallel: bool = False) -> Schedule:
    """Schedule :func:`blur`: strips of ``strip`` rows; the first stage is computed for a strip while it is in the cache.

    ``strip`` is the maximum; strips of equal height, which need memory for only one of them, are used if possible. If
    strips or rows do not divide evenly among the threads, the first stage is recomputed for each result.
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
