"""Operations on the rows of a matrix: softmax, layer norm, sums of rows and of columns.

A sum or maximum along a row is computed as many partial results (``rfactor``), so that it is vector code without a long
dependence chain; a row is read from memory once and is in the cache for the following steps.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..schedule import BlockRV, LoopRV, Schedule
from ..script import tir as T
from ..target import streams, vector_registers


def softmax(rows: int, columns: int) -> PrimFunc:
    """B[i, :] = exp(A[i, :] - max) / sum for float32 A (rows, columns).

    >>> [b.name for b in softmax(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def softmax(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows, columns), "float32")):
        most = T.alloc_buffer((rows,), "float32")
        power = T.alloc_buffer((rows, columns), "float32")
        total = T.alloc_buffer((rows,), "float32")
        scale = T.alloc_buffer((rows,), "float32")
        for i, j in T.grid(rows, columns):
            with T.block("most"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    most[vi] = T.min_value("float32")
                most[vi] = T.max(most[vi], A[vi, vj])
        for i, j in T.grid(rows, columns):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", [i, j])
                power[vi, vj] = T.exp(A[vi, vj] - most[vi])
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += power[vi, vj]
        for i in range(rows):
            with T.block("scale"):
                vi = T.axis.spatial(rows, i)
                scale[vi] = T.float32(1) / total[vi]
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = power[vi, vj] * scale[vi]

    return softmax


def schedule_softmax(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`softmax`: all steps row by row, in vectors; rows are distributed over threads if ``parallel``.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = rows.schedule_softmax(tir.Schedule(rows.softmax(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    return _row_at_a_time(sch, ["scale", "total", "power", "most"], ["total", "most"], ["power", "out"], parallel)


def layer_norm(rows: int, columns: int, eps: float = 1e-5) -> PrimFunc:
    """B[i, :] = (A[i, :] - mean) / sqrt(variance + eps) * G + H for float32 A (rows, columns), G and H (columns,).

    >>> [b.name for b in layer_norm(4, 10).buffers()]
    ['A', 'G', 'H', 'B']
    """

    @T.prim_func
    def layer_norm(
        A: T.Buffer((rows, columns), "float32"),
        G: T.Buffer((columns,), "float32"),
        H: T.Buffer((columns,), "float32"),
        B: T.Buffer((rows, columns), "float32"),
    ):
        total = T.alloc_buffer((rows,), "float32")
        squares = T.alloc_buffer((rows,), "float32")
        scale = T.alloc_buffer((rows,), "float32")
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += A[vi, vj] * T.float32(1 / columns)
        for i, j in T.grid(rows, columns):
            with T.block("squares"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    squares[vi] = T.float32(0)
                squares[vi] += (A[vi, vj] - total[vi]) * (A[vi, vj] - total[vi])
        for i in range(rows):
            with T.block("scale"):
                vi = T.axis.spatial(rows, i)
                scale[vi] = T.float32(1) / T.sqrt(squares[vi] * T.float32(1 / columns) + T.float32(eps))
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = (A[vi, vj] - total[vi]) * scale[vi] * G[vj] + H[vj]

    return layer_norm


def schedule_layer_norm(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`layer_norm`: all steps row by row, in vectors; rows are distributed over threads if ``parallel``.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = rows.schedule_layer_norm(tir.Schedule(rows.layer_norm(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    return _row_at_a_time(sch, ["scale", "squares", "total"], ["squares", "total"], ["out"], parallel)


def row_sum(rows: int, columns: int) -> PrimFunc:
    """B[i] = sum over j of A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in row_sum(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def row_sum(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows,), "float32")):
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vj]

    return row_sum


def schedule_row_sum(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`row_sum`: partial sums in vectors; rows are distributed over threads if ``parallel``.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = rows.schedule_row_sum(tir.Schedule(rows.row_sum(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    partial = reduce_in_parts(sch, "total")
    row = sch.get_loops("total")[0]
    place_parts(sch, partial, row)
    if parallel:
        sch.parallel(row)
    return sch


def column_sum(rows: int, columns: int) -> PrimFunc:
    """B[j] = sum over i of A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in column_sum(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def column_sum(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((columns,), "float32")):
        for j, i in T.grid(columns, rows):
            with T.block("total"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    B[vj] = T.float32(0)
                B[vj] += A[vi, vj]

    return column_sum


def schedule_column_sum(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`column_sum`: eight rows at once are added to the sums, which stay in the cache.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = rows.schedule_column_sum(tir.Schedule(rows.column_sum(64, 64)))
    >>> len(sch.history) > 1
    True
    """
    column, row = sch.get_loops("total")
    rows = sch.get(row).extent.value
    steps = next(f for f in (8, 4, 5, 7, 3, 2, 1) if rows % f == 0)
    lanes = vector_registers().lanes()
    width = min(4096, -(-sch.get(column).extent.value // lanes) * lanes)
    outer, middle, lane = sch.split(column, [None, width // lanes, lanes])
    row, step = sch.split(row, [None, steps])
    sch.reorder(outer, row, middle, step, lane)
    init = sch.decompose_reduction("total", row)
    sch.vectorize(lane)
    sch.unroll(step)
    sch.vectorize(sch.get_loops(init)[-1])
    if parallel:
        sch.parallel(outer)
    return sch


def reduce_in_parts(sch: Schedule, block: str, parts: tuple[int, ...] = ()) -> list[BlockRV]:
    """Factor a reduction along a row into ``parts[0]`` partial results, their reduction into ``parts[1]``, and so on
    (default: into four of this machine's vectors, then one, then four numbers).

    Returns the blocks that compute partial results, the last one first.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = tir.Schedule(rows.row_sum(8, 256))
    >>> rows.reduce_in_parts(sch, "total", (64, 16))
    [BlockRV(total_rf_1), BlockRV(total_rf)]
    """
    lanes = vector_registers().lanes()
    made: list[BlockRV] = []
    for count in parts or (4 * lanes, lanes, 4):
        along = next(x for x in sch.get_loops(block) if sch.get(x).loop_var.name.startswith(("j", "vj")))
        extent = sch.get(along).extent.value
        if made and extent <= count:
            break
        _, part = sch.split(along, [None, min(count, -(-extent // lanes) * lanes)])
        made.insert(0, sch.rfactor(part, 1))
    return made


def vectorize_by(sch: Schedule, loop: LoopRV | str, lanes: int | None = None, unroll: int = 4) -> None:
    """Split ``loop`` into vectors of ``lanes`` (default: this machine's of float32), ``unroll`` of them per iteration.

    >>> import tir
    >>> from tir.library import elementwise, rows
    >>> sch = tir.Schedule(elementwise.scale_add(1024))
    >>> rows.vectorize_by(sch, "i", lanes=16, unroll=4)
    >>> [(loop.name, sch.get(loop).kind, int(sch.get(loop).extent)) for loop in sch.get_loops("out")]
    [('i_0', 'serial', 16), ('i_1', 'unrolled', 4), ('i_2', 'vectorized', 16)]
    """
    _, middle, lane = sch.split(loop, [None, unroll, lanes or vector_registers().lanes()])
    sch.vectorize(lane)
    sch.unroll(middle)


def stream(sch: Schedule, loop: LoopRV | str, elements: int) -> None:
    """Store B non-temporally in ``loop`` if its float32 ``elements`` would not stay in the cache.

    >>> import tir
    >>> from tir.library import elementwise, rows
    >>> sch = tir.Schedule(elementwise.scale_add(1 << 30))
    >>> rows.stream(sch, "i", 1 << 30)
    >>> dict(sch.get("i").annotations)
    {'pragma_nontemporal': 'B'}
    """
    if streams(elements):
        sch.annotate(loop, "pragma_nontemporal", "B")


def place_parts(sch: Schedule, partial: list[BlockRV], row: LoopRV | str) -> None:
    """Compute partial results in each iteration of ``row``, as vectors.

    >>> import tir
    >>> from tir.library import rows
    >>> sch = tir.Schedule(rows.row_sum(8, 256))
    >>> rows.place_parts(sch, rows.reduce_in_parts(sch, "total", (64,)), "total.i")
    >>> [loop.name for loop in sch.get_loops("total_rf")]
    ['i', 'ax2', 'ax1', 'ax0_0', 'ax0_1', 'ax0_2']
    """
    for block in partial:
        sch.compute_at(block, row, preserve_unit_loops=True)
        *_, part, _, outer = sch.get_loops(block)
        sch.reorder(outer, part)
        init = sch.decompose_reduction(block, outer)
        lanes = min(vector_registers().lanes(), sch.get(part).extent.value)
        for each in (block, init):
            vectorize_by(sch, sch.get_loops(each)[-1], lanes)


def _row_at_a_time(
    sch: Schedule, inside: list[str], reductions: list[str], elementwise: list[str], parallel: bool
) -> Schedule:
    row, column = sch.get_loops("out")
    elements = sch.get(row).extent.value * sch.get(column).extent.value
    partial = {block: reduce_in_parts(sch, block) for block in reductions}
    for block in inside:
        sch.compute_at(block, row, preserve_unit_loops=True)
        place_parts(sch, partial.get(block, []), row)
    for block in elementwise:
        vectorize_by(sch, sch.get_loops(block)[-1])
    stream(sch, row, elements)
    if parallel:
        sch.parallel(row)
    return sch
