"""Matrix multiplication with the CPU's dot-product instructions: int8 (vpdpbusd) and bfloat16 (vdpbf16ps).

One instruction adds to each of 16 sums the products of a group of neighbours along the reduction: four int8, two
bfloat16. So B's panels hold such groups side by side, and the innermost loops are replaced by the instruction.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..amx import tiles_available
from ..function import PrimFunc
from ..intrin import x86
from ..schedule import Schedule
from ..script import tir as T
from .gemm import LANES, pick_tile
from .machine import cache_bytes, threads
from .padding import padded
from .tile_gemm import scheduled_tile_gemm

# left operand, right operand, sum, products a sum takes at once, instruction, interleaving of a group's rows
KINDS = {
    "int8": ("uint8", "int8", "int32", 4, x86.VNNI_512, x86.INTERLEAVE_INT8),
    "bfloat16": ("bfloat16", "bfloat16", "float32", 2, x86.BF16_512, x86.INTERLEAVE_BF16),
}


def dot_gemm(m: int, n: int, k: int, kind: str = "int8", rows: int = 6, columns: int = 64) -> PrimFunc:
    """C = A @ B for A (m, k) and B (k, n), summed in C's wider type: uint8 by int8 in int32, bfloat16 in float32.

    >>> [b.name for b in dot_gemm(8, 16, 4).buffers()]
    ['A', 'B', 'C']
    """
    left, right, wide, group, *_ = KINDS[kind]
    strips, panels, groups = -(-m // rows), -(-n // columns), -(-k // group)
    columns_of_a = rows_of_b = groups * group
    columns_of_b = panels * columns

    @T.prim_func
    def gemm(A: T.Buffer((m, k), left), B: T.Buffer((k, n), right), C: T.Buffer((m, n), wide)):
        whole = T.alloc_buffer((m, groups, group), left)
        packed = T.alloc_buffer((panels, groups, columns, group), right)
        tiles = T.alloc_buffer((strips, panels, rows, columns), wide)
        for i, p, q in T.grid(m, groups, group):
            with T.block("fill"):
                vi, vp, vq = T.axis.remap("SSS", [i, p, q])
                whole[vi, vp, vq] = padded(A, vi, vp * group + vq, m, columns_of_a)
        for jo, p, ji, q in T.grid(panels, groups, columns, group):
            with T.block("pack"):
                vjo, vp, vji, vq = T.axis.remap("SSSS", [jo, p, ji, q])
                packed[vjo, vp, vji, vq] = padded(B, vp * group + vq, vjo * columns + vji, rows_of_b, columns_of_b)
        for io, jo, p, ii, ji, q in T.grid(strips, panels, groups, rows, columns, group):
            with T.block("multiply"):
                vio, vjo, vp, vii, vji, vq = T.axis.remap("SSRSSR", [io, jo, p, ii, ji, q])
                T.where(io * rows + ii < m)
                with T.init():
                    tiles[vio, vjo, vii, vji] = T.cast(0, wide)
                tiles[vio, vjo, vii, vji] += T.cast(whole[vio * rows + vii, vp, vq], wide) * T.cast(
                    packed[vjo, vp, vji, vq], wide
                )
        for io, jo, ii, ji in T.grid(strips, panels, rows, columns):
            with T.block("store"):
                vio, vjo, vii, vji = T.axis.remap("SSSS", [io, jo, ii, ji])
                if vio * rows + vii < m and vjo * columns + vji < n:
                    C[vio * rows + vii, vjo * columns + vji] = tiles[vio, vjo, vii, vji]

    return gemm


def schedule_dot_gemm(sch: Schedule, kind: str = "int8", together: int = 1, parallel: bool = False) -> Schedule:
    """Schedule :func:`dot_gemm`: as ``schedule_gemm``, with the innermost loops done by one instruction."""
    *_, group, instruction, interleave = KINDS[kind]
    whole_groups, whole_panels = _whole(sch)
    if whole_groups:
        sch.compute_inline("fill")
    io, jo, p, ii, ji, q = sch.get_loops("multiply")
    jc, jr = sch.split(jo, [None, together], names=["jc", "jr"])
    jv, lane = sch.split(ji, [None, LANES], names=["jv", "lane"])
    sch.reorder(jc, io, jr, p, ii, jv, lane, q)
    sch.compute_at("pack", jc, preserve_unit_loops=True)
    if parallel:
        sch.parallel(jc)
    sch.reverse_compute_at("store", jr)
    sch.set_scope("multiply", 0, "local")
    init = sch.decompose_reduction("multiply", p)
    sch.vectorize(sch.get_loops(init)[-1])
    *_, row, column = sch.get_loops("store")
    column, store_lane = sch.split(column, [None, LANES])
    sch.vectorize(store_lane)
    for loop in (ii, jv, *sch.get_loops(init)[3:-1], row, column):
        sch.unroll(loop)
    *_, jr, p, ji, q = sch.get_loops("pack")
    jv, pack_lane = sch.split(ji, [None, LANES])
    sch.reorder(p, jr, jv, pack_lane, q)
    if whole_groups and whole_panels:
        sch.tensorize(pack_lane, interleave)
    sch.tensorize(lane, instruction)
    return sch


def _whole(sch: Schedule) -> tuple[bool, bool]:
    """Whether the reduction is whole groups, and the columns whole panels: then nothing is filled with zeros."""
    func = next(iter(sch.mod.functions.values()))
    b = func.buffer_map[func.params[1]]
    panels, groups, columns, group = (sch.get(loop).extent.value for loop in sch.get_loops("pack"))
    k, n = (size.value for size in b.shape)
    return groups * group == k, panels * columns == n


def scheduled_dot_gemm(
    m: int, n: int, k: int, kind: str = "int8", cores: int | None = None, tiles: bool | None = None
) -> Schedule:
    """The product of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on).

    ``tiles``: on AMX tile registers, as :func:`tile_gemm` (default: where this machine has them), else :func:`dot_gemm`.
    """
    cores = threads() if cores is None else cores
    if tiles or (tiles is None and tiles_available(kind)):
        return scheduled_tile_gemm(m, n, k, kind, cores)
    rows, columns = pick_tile(m, n)
    panels, group = -(-n // columns), KINDS[kind][3]
    fitting = max(1, cache_bytes(2) // 2 // (-(-k // group) * 4 * columns))
    parallel = cores > 1 and panels >= cores
    if parallel:
        fitting = min(fitting, max(1, panels // cores))
    together = max(f for f in range(1, min(fitting, panels) + 1) if panels % f == 0 or f * 2 > fitting)
    return schedule_dot_gemm(Schedule(dot_gemm(m, n, k, kind, rows, columns)), kind, together, parallel)
