"""Schedules of the library's operations on the rows of a matrix.

A sum or maximum along a row is computed as many partial results (``rfactor``), so that it is vector code without a long
dependence chain; a row is read from memory once and is in the cache for the following steps.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.library.rows import column_sum as column_sum
from tir.library.rows import layer_norm as layer_norm
from tir.library.rows import row_sum as row_sum
from tir.library.rows import softmax as softmax
from tir.schedule import BlockRV, LoopRV, Schedule
from tir.target import streams, vector_registers


def schedule_softmax(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`softmax`: all steps row by row, in vectors; rows are distributed over threads if ``parallel``."""
    return _row_at_a_time(sch, ["scale", "total", "power", "most"], ["total", "most"], ["power", "out"], parallel)


def schedule_layer_norm(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`layer_norm`: all steps row by row, in vectors; rows are distributed over threads if ``parallel``."""
    return _row_at_a_time(sch, ["scale", "squares", "total"], ["squares", "total"], ["out"], parallel)


def schedule_row_sum(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`row_sum`: partial sums in vectors; rows are distributed over threads if ``parallel``."""
    partial = reduce_in_parts(sch, "total")
    row = sch.get_loops("total")[0]
    place_parts(sch, partial, row)
    if parallel:
        sch.parallel(row)
    return sch


def schedule_column_sum(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`column_sum`: eight rows at once are added to the sums, which stay in the cache."""
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
    """Split ``loop`` into vectors of ``lanes`` (default: this machine's of float32), ``unroll`` of them per iteration."""
    _, middle, lane = sch.split(loop, [None, unroll, lanes or vector_registers().lanes()])
    sch.vectorize(lane)
    sch.unroll(middle)


def stream(sch: Schedule, loop: LoopRV | str, elements: int) -> None:
    """Store B non-temporally in ``loop`` if its float32 ``elements`` would not stay in the cache."""
    if streams(elements):
        sch.annotate(loop, "pragma_nontemporal", "B")


def place_parts(sch: Schedule, partial: list[BlockRV], row: LoopRV | str) -> None:
    """Compute partial results in each iteration of ``row``, as vectors."""
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
