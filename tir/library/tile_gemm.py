"""Matrix multiplication on AMX tile registers: bfloat16 and bytes, 32 by 32 sums in four of the eight registers.

Both operands are packed into tiles, padded with zeros to whole ones: A a strip of 32 rows at a time, B the panels of 32
columns that half of the L2 cache holds.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..intrin import x86
from ..intrin.amx import TILE, amx_intrinsics
from ..schedule import Schedule
from ..script import tir as T
from .dot_gemm import padded
from .machine import cache_bytes, threads

# left operand, right operand, sum, products a sum takes at once, product of tiles, interleaving of a group's rows
KINDS = {
    "int8": ("uint8", "int8", "int32", 4, "us", x86.INTERLEAVE_INT8),
    "bfloat16": ("bfloat16", "bfloat16", "float32", 2, "bf16", x86.INTERLEAVE_BF16),
}
SIDE = 2  # tiles of sums along each side of a block


def tile_gemm(m: int, n: int, k: int, kind: str = "bfloat16") -> PrimFunc:
    """C = A @ B for A (m, k) and B (k, n), summed in C's wider type: uint8 by int8 in int32, bfloat16 in float32.

    >>> [b.name for b in tile_gemm(8, 16, 4).buffers()]
    ['A', 'B', 'C']
    """
    left, right, wide, group, *_ = KINDS[kind]
    block, depth = SIDE * TILE, TILE * group
    strips, panels, steps = -(-m // block), -(-n // block), -(-k // depth)
    rows, columns, sums = strips * block, panels * block, steps * depth

    @T.prim_func
    def gemm(A: T.Buffer((m, k), left), B: T.Buffer((k, n), right), C: T.Buffer((m, n), wide)):
        lefts = T.alloc_buffer((strips, steps, SIDE, TILE, TILE, group), left)
        rights = T.alloc_buffer((panels, steps, SIDE, TILE, TILE, group), right)
        tiles = T.alloc_buffer((strips, panels, SIDE, SIDE, TILE, TILE), wide)
        for io, p, ii, i, g, q in T.grid(strips, steps, SIDE, TILE, TILE, group):
            with T.block("pack_left"):
                vio, vp, vii, vi, vg, vq = T.axis.remap("SSSSSS", [io, p, ii, i, g, q])
                lefts[vio, vp, vii, vi, vg, vq] = padded(
                    A, vio * block + vii * TILE + vi, vp * depth + vg * group + vq, rows, sums
                )
        for jo, p, ji, g, j, q in T.grid(panels, steps, SIDE, TILE, TILE, group):
            with T.block("pack_right"):
                vjo, vp, vji, vg, vj, vq = T.axis.remap("SSSSSS", [jo, p, ji, g, j, q])
                rights[vjo, vp, vji, vg, vj, vq] = padded(
                    B, vp * depth + vg * group + vq, vjo * block + vji * TILE + vj, sums, columns
                )
        for io, jo, p, ii, ji, i, j, g, q in T.grid(strips, panels, steps, SIDE, SIDE, TILE, TILE, TILE, group):
            with T.block("multiply"):
                vio, vjo, vp, vii, vji, vi, vj, vg, vq = T.axis.remap("SSRSSSSRR", [io, jo, p, ii, ji, i, j, g, q])
                with T.init():
                    tiles[vio, vjo, vii, vji, vi, vj] = T.cast(0, wide)
                tiles[vio, vjo, vii, vji, vi, vj] += T.cast(lefts[vio, vp, vii, vi, vg, vq], wide) * T.cast(
                    rights[vjo, vp, vji, vg, vj, vq], wide
                )
        for io, jo, ii, ji, i, j in T.grid(strips, panels, SIDE, SIDE, TILE, TILE):
            with T.block("store"):
                vio, vjo, vii, vji, vi, vj = T.axis.remap("SSSSSS", [io, jo, ii, ji, i, j])
                if vio * block + vii * TILE + vi < m and vjo * block + vji * TILE + vj < n:
                    C[vio * block + vii * TILE + vi, vjo * block + vji * TILE + vj] = tiles[vio, vjo, vii, vji, vi, vj]

    return gemm


def schedule_tile_gemm(sch: Schedule, kind: str = "bfloat16", together: int = 1, parallel: bool = False) -> Schedule:
    """Schedule :func:`tile_gemm`: ``together`` panels of B are packed, then every strip of A meets each of them."""
    *_, product, interleave = KINDS[kind]
    names = amx_intrinsics(product)
    io, jo, p, ii, ji, i, j, g, q = sch.get_loops("multiply")
    jc, jr = sch.split(jo, [None, together], names=["jc", "jr"])
    sch.reorder(jc, io, jr, p, ii, ji, i, j, g, q)
    sch.compute_at("pack_right", jc, preserve_unit_loops=True)
    sch.compute_at("pack_left", io, preserve_unit_loops=True)
    if parallel:
        sch.parallel(jc)
    sch.reverse_compute_at("store", jr, preserve_unit_loops=True)
    sums = sch.cache_write("multiply", 0, "amx.tile")
    loads = [sch.cache_read("multiply", operand, "amx.tile") for operand in (0, 1)]
    for load, name in zip(loads, ("load_a", "load_b")):
        sch.compute_at(load, p, preserve_unit_loops=True)
        *_, tile, row, _, _ = sch.get_loops(load)
        sch.tensorize(row, names[name])
        sch.unroll(tile)
    init = sch.decompose_reduction("multiply", p)
    for block, name in ((init, "zero"), (sums, "store")):
        *_, down, across, row, _ = sch.get_loops(block)
        sch.tensorize(row, names[name])
        sch.unroll(down)
        sch.unroll(across)
    sch.tensorize(i, names["dot"])
    sch.unroll(ii)
    sch.unroll(ji)
    sch.vectorize(sch.get_loops("store")[-1])
    sch.vectorize(sch.fuse(*sch.get_loops("pack_left")[-2:]))
    return sch
