"""Matrix multiplication on AMX tile registers: bfloat16 and bytes, 32 by 32 sums in four of the eight registers.

Both operands are packed into zero-padded tiles: as many panels of 32 columns of B as half of the L2 cache holds, and
a strip of 32 rows of A at a time. The reduction is split into chunks: the tiles of A for one chunk stay in L1.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..intrin import x86
from ..intrin.amx import TILE, amx_intrinsics
from ..schedule import Schedule
from ..script import tir as T
from .machine import cache_bytes, threads
from .padding import padded

# left operand, right operand, sum, products a sum takes at once, product of tiles, interleaving of a group's rows
KINDS = {
    "int8": ("uint8", "int8", "int32", 4, "us", x86.INTERLEAVE_INT8),
    "bfloat16": ("bfloat16", "bfloat16", "float32", 2, "bf16", x86.INTERLEAVE_BF16),
}
SIDE = 2  # tiles along each side of a block of sums
BLOCK = SIDE * TILE
CHUNK = 16  # tiles along the reduction at a time: those of a strip of A stay in L1, those of B bypass it


def tile_gemm(m: int, n: int, k: int, kind: str = "bfloat16", together: int = 1, chunk: int = CHUNK) -> PrimFunc:
    """C = A @ B for A (m, k) and B (k, n), summed in C's wider type: uint8 by int8 in int32, bfloat16 in float32.

    B has whole groups of ``together`` panels. The reduction is summed in chunks of at most ``chunk`` tiles, whose sums are
    added up.

    >>> [b.name for b in tile_gemm(8, 16, 4).buffers()]
    ['A', 'B', 'C']
    """
    left, right, wide, group, *_ = KINDS[kind]
    depth = TILE * group
    strips, panels, steps = -(-m // BLOCK), -(-n // (BLOCK * together)) * together, -(-k // depth)
    chunks = -(-steps // chunk)
    chunk = -(-steps // chunks)  # of equal size, so that little is padded
    rows, columns, sums = strips * BLOCK, panels * BLOCK, chunks * chunk * depth

    @T.prim_func
    def gemm(A: T.Buffer((m, k), left), B: T.Buffer((k, n), right), C: T.Buffer((m, n), wide)):
        whole = T.alloc_buffer((sums, columns), right)
        lefts = T.alloc_buffer((strips, chunks, chunk, SIDE, TILE, TILE, group), left)
        rights = T.alloc_buffer((chunks, panels, chunk, SIDE, TILE, TILE, group), right)
        tiles = T.alloc_buffer((strips, panels, chunks, SIDE, SIDE, TILE, TILE), wide)
        for p, j in T.grid(sums, columns):
            with T.block("fill"):
                vp, vj = T.axis.remap("SS", [p, j])
                whole[vp, vj] = padded(B, vp, vj, sums, columns)
        for pc, jo, p, ji, g, j, q in T.grid(chunks, panels, chunk, SIDE, TILE, TILE, group):
            with T.block("pack_right"):
                vpc, vjo, vp, vji, vg, vj, vq = T.axis.remap("SSSSSSS", [pc, jo, p, ji, g, j, q])
                rights[vpc, vjo, vp, vji, vg, vj, vq] = whole[
                    (vpc * chunk + vp) * depth + vg * group + vq, vjo * BLOCK + vji * TILE + vj
                ]
        for io, pc, p, ii, i, g, q in T.grid(strips, chunks, chunk, SIDE, TILE, TILE, group):
            with T.block("pack_left"):
                vio, vpc, vp, vii, vi, vg, vq = T.axis.remap("SSSSSSS", [io, pc, p, ii, i, g, q])
                lefts[vio, vpc, vp, vii, vi, vg, vq] = padded(
                    A, vio * BLOCK + vii * TILE + vi, (vpc * chunk + vp) * depth + vg * group + vq, rows, sums
                )
        for io, jo, pc, p, ii, ji, i, j, g, q in T.grid(
            strips, panels, chunks, chunk, SIDE, SIDE, TILE, TILE, TILE, group
        ):
            with T.block("multiply"):
                vio, vjo, vpc, vp, vii, vji, vi, vj, vg, vq = T.axis.remap(
                    "SSSRSSSSRR", [io, jo, pc, p, ii, ji, i, j, g, q]
                )
                with T.init():
                    tiles[vio, vjo, vpc, vii, vji, vi, vj] = T.cast(0, wide)
                tiles[vio, vjo, vpc, vii, vji, vi, vj] += T.cast(lefts[vio, vpc, vp, vii, vi, vg, vq], wide) * T.cast(
                    rights[vpc, vjo, vp, vji, vg, vj, vq], wide
                )
        for io, jo, pc, ii, i, ji, j in T.grid(strips, panels, chunks, SIDE, TILE, SIDE, TILE):
            with T.block("add"):
                vio, vjo, vpc, vii, vi, vji, vj = T.axis.remap("SSRSSSS", [io, jo, pc, ii, i, ji, j])
                T.where(io * BLOCK + ii * TILE + i < m and jo * BLOCK + ji * TILE + j < n)
                with T.init():
                    C[vio * BLOCK + vii * TILE + vi, vjo * BLOCK + vji * TILE + vj] = T.cast(0, wide)
                C[vio * BLOCK + vii * TILE + vi, vjo * BLOCK + vji * TILE + vj] += tiles[
                    vio, vjo, vpc, vii, vji, vi, vj
                ]

    return gemm


def schedule_tile_gemm(sch: Schedule, kind: str = "bfloat16", together: int = 1, parallel: bool = False) -> Schedule:
    """Schedule :func:`tile_gemm`: ``together`` panels of B are packed, then every strip of A is multiplied with them."""
    *_, product, interleave = KINDS[kind]
    names = amx_intrinsics(product)
    io, jo, pc, p, ii, ji, i, j, g, q = sch.get_loops("multiply")
    jc, jr = sch.split(jo, [None, together], names=["jc", "jr"])
    sch.reorder(jc, io, pc, jr, p, ii, ji, i, j, g, q)
    sch.compute_at("pack_right", jc, preserve_unit_loops=True)
    sch.compute_at("pack_left", pc, preserve_unit_loops=True)
    if parallel:
        sch.parallel(jc)
    sch.reverse_compute_at("add", jr, preserve_unit_loops=True)
    sums = sch.cache_write("multiply", 0, "amx.tile")
    lefts, rights = (sch.cache_read("multiply", operand, "amx.tile") for operand in (0, 1))
    sch.compute_at(lefts, ii, preserve_unit_loops=True)
    sch.compute_at(rights, p, preserve_unit_loops=True)
    init = sch.decompose_reduction("multiply", p)
    for block, name, axes in ((lefts, "load_a", 3), (rights, "stream_b", 3), (init, "zero", 2), (sums, "store", 2)):
        *_, row = loops = sch.get_loops(block)[: 1 - axes]
        for tile in loops[-3:-1]:
            sch.unroll(tile)
        sch.tensorize(row, names[name])
    sch.tensorize(i, names["dot"])
    sch.unroll(ii)
    sch.unroll(ji)
    sch.vectorize(sch.get_loops("add")[-1])
    sch.vectorize(sch.fuse(*sch.get_loops("pack_left")[-2:]))
    *_, jr, p, ji, g, j, q = sch.get_loops("pack_right")
    sch.reorder(p, g, jr, ji, j, q)
    fill = sch.get(sch.get_block("fill"))
    if fill.reads[0].buffer.shape == fill.writes[0].buffer.shape:
        sch.compute_inline("fill")
    else:
        sch.compute_at("fill", g)
        _, lane = sch.split(sch.get_loops("fill")[-1], [None, BLOCK])
        sch.vectorize(lane)
    sch.tensorize(j, interleave)
    return sch


def scheduled_tile_gemm(m: int, n: int, k: int, kind: str = "bfloat16", cores: int | None = None) -> Schedule:
    """:func:`tile_gemm` of any sizes, scheduled for ``cores`` cores (default: as many as parallel loops run on)."""
    cores = threads() if cores is None else cores
    panels, group = -(-n // BLOCK), KINDS[kind][3]
    fitting = max(1, cache_bytes(2) // 2 // (-(-k // group) * 4 * BLOCK))
    parallel = cores > 1 and panels >= cores
    groups = max(-(-panels // fitting), cores if parallel else 1)
    together = -(-panels // groups)
    return schedule_tile_gemm(Schedule(tile_gemm(m, n, k, kind, together)), kind, together, parallel)
