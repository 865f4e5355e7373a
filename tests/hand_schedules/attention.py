"""Attention for one head: softmax(Q @ K.T / sqrt(d)) @ V, a few rows of queries at a time.

The scores of some rows stay in the cache: they are computed, turned into weights and used before the next rows.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.function import PrimFunc
from tir.schedule import Schedule
from tir.script import tir as T
from tir.target import vector_registers

from .rows import place_parts, reduce_in_parts, vectorize_by

ROWS = (12, 14, 13, 11, 10, 8, 9, 7, 6, 5, 4, 3, 2, 1)  # of queries in a register tile, best first


def attention(queries: int, keys: int, depth: int, columns: int | None = None) -> PrimFunc:
    """B = softmax(Q @ K.T / sqrt(depth)) @ V for float32 Q (queries, depth), K and V (keys, depth), B (queries, depth).

    The scores are tiles of ``columns`` keys (default: two of this machine's vectors).
    """
    columns = columns or 2 * vector_registers().lanes()
    panels, scale = -(-keys // columns), depth**-0.5

    @T.prim_func
    def attention(
        Q: T.Buffer((queries, depth), "float32"),
        K: T.Buffer((keys, depth), "float32"),
        V: T.Buffer((keys, depth), "float32"),
        B: T.Buffer((queries, depth), "float32"),
    ):
        turned = T.alloc_buffer((panels, depth, columns), "float32")
        score = T.alloc_buffer((queries, panels * columns), "float32")
        most = T.alloc_buffer((queries,), "float32")
        power = T.alloc_buffer((queries, keys), "float32")
        total = T.alloc_buffer((queries,), "float32")
        mixed = T.alloc_buffer((queries, depth), "float32")
        for jo, d, ji in T.grid(panels, depth, columns):
            with T.block("turn"):
                vjo, vd, vji = T.axis.remap("SSS", [jo, d, ji])
                turned[vjo, vd, vji] = T.if_then_else(
                    vjo * columns + vji < keys, K[vjo * columns + vji, vd] * T.float32(scale), T.float32(0)
                )
        for i, jo, d, ji in T.grid(queries, panels, depth, columns):
            with T.block("score"):
                vi, vjo, vd, vji = T.axis.remap("SSRS", [i, jo, d, ji])
                with T.init():
                    score[vi, vjo * columns + vji] = T.float32(0)
                score[vi, vjo * columns + vji] += Q[vi, vd] * turned[vjo, vd, vji]
        for i, j in T.grid(queries, keys):
            with T.block("most"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    most[vi] = T.min_value("float32")
                most[vi] = T.max(most[vi], score[vi, vj])
        for i, j in T.grid(queries, keys):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", [i, j])
                power[vi, vj] = T.exp(score[vi, vj] - most[vi])
        for i, j in T.grid(queries, keys):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += power[vi, vj]
        for i, d, j in T.grid(queries, depth, keys):
            with T.block("mixed"):
                vi, vd, vj = T.axis.remap("SSR", [i, d, j])
                with T.init():
                    mixed[vi, vd] = T.float32(0)
                mixed[vi, vd] += power[vi, vj] * V[vj, vd]
        for i, d in T.grid(queries, depth):
            with T.block("out"):
                vi, vd = T.axis.remap("SS", [i, d])
                B[vi, vd] = mixed[vi, vd] / total[vi]

    return attention


def schedule_attention(sch: Schedule, parallel: bool = False) -> Schedule:
    """Schedule :func:`attention`: all steps for a few rows of queries, both products in register tiles."""
    i, _ = sch.get_loops("out")
    queries = sch.get(i).extent.value
    registers = vector_registers()
    rows = next(r for r in ROWS if queries % r == 0 and 2 * r + 3 <= registers.count)
    partial = {block: reduce_in_parts(sch, block) for block in ("total", "most")}
    strip, _ = sch.split(sch.get_loops("out")[0], [None, rows])
    if parallel:
        sch.parallel(strip)
    for block in ("mixed", "total", "power", "most", "score"):
        sch.compute_at(block, strip, preserve_unit_loops=True)
        place_parts(sch, partial.get(block, []), strip)
    for block in ("power", "out"):
        vectorize_by(sch, sch.get_loops(block)[-1])
    *_, i, jo, d, ji = sch.get_loops("score")
    _tile(sch, "score", [jo], i, ji, d)
    *_, i, d, j = sch.get_loops("mixed")
    do, di = sch.split(d, [None, 2 * registers.lanes()])
    _tile(sch, "mixed", [do], i, di, j)
    return sch


def _tile(sch: Schedule, block: str, outer: list, row, column, reduce) -> None:
    """A register tile of rows by columns of a product, over the whole reduction."""
    vector, lane = sch.split(column, [None, vector_registers().lanes()])
    sch.reorder(*outer, reduce, row, vector, lane)
    sch.vectorize(lane)
    init = sch.decompose_reduction(block, reduce)
    for loop in (row, vector, *sch.get_loops(init)[-3:-1]):
        sch.unroll(loop)
