"""Matrix times vector: bound by reading the matrix once, so several rows and several vectors of sums are in flight."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from tir.function import PrimFunc
from tir.schedule import Schedule
from tir.script import tir as T
from tir.target import threads, vector_registers


def gemv(m: int, k: int, sums: int = 32) -> PrimFunc:
    """y = A @ x for float32 A (m, k) and x (k,), each row in ``sums`` partial sums."""
    steps = -(-k // sums)

    @T.prim_func
    def gemv(A: T.Buffer((m, k), "float32"), x: T.Buffer((k,), "float32"), y: T.Buffer((m,), "float32")):
        partial = T.alloc_buffer((m, sums), "float32")
        for i, p, s in T.grid(m, steps, sums):
            with T.block("multiply"):
                vi, vp, vs = T.axis.remap("SRS", [i, p, s])
                with T.init():
                    partial[vi, vs] = T.float32(0)
                partial[vi, vs] += T.if_then_else(
                    vp * sums + vs < k, A[vi, vp * sums + vs] * x[vp * sums + vs], T.float32(0)
                )
        for i, s in T.grid(m, sums):
            with T.block("total"):
                vi, vs = T.axis.remap("SR", [i, s])
                with T.init():
                    y[vi] = T.float32(0)
                y[vi] += partial[vi, vs]

    return gemv


def schedule_gemv(sch: Schedule, rows: int = 4, parallel: bool = False) -> Schedule:
    """Schedule :func:`gemv`: ``rows`` rows at once, their partial sums in registers, added up at the end."""
    i, _ = sch.get_loops("total")
    io, ii = sch.split(i, [None, rows], names=["io", "ii"])
    sch.compute_at("multiply", io, preserve_unit_loops=True)
    sch.set_scope("multiply", 0, "local")
    if parallel:
        sch.parallel(io)
    row, step, lane = sch.get_loops("multiply")[-3:]
    outer, inner = sch.split(lane, [None, vector_registers().lanes()])
    sch.reorder(step, row, outer, inner)
    sch.vectorize(inner)
    init = sch.decompose_reduction("multiply", step)
    for loop in (row, outer, *sch.get_loops(init)[1:-1], *sch.get_loops("total")[1:]):
        sch.unroll(loop)
    return sch


def scheduled_gemv(m: int, k: int, cores: int | None = None) -> Schedule:
    """:func:`gemv` of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on)."""
    cores = threads() if cores is None else cores
    rows = next((r for r in (4, 3, 2) if m % r == 0), 1)
    return schedule_gemv(Schedule(gemv(m, k, 2 * vector_registers().lanes())), rows, parallel=cores > 1 and m * k > 1e5)
