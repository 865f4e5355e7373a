"""Half-precision matrix multiplication on tensor cores, with a pipeline of asynchronous copies.

A thread block of four warps makes a tile of C; each warp holds 2 x 2 or more fragments of 16 x 16 sums. While the tensor
cores use one pair of tiles of A and B in shared memory, the next two are copied there. Rows of them lie 16 bytes further
apart than they are long, and are 128 bytes or more: copies meet no bank twice.
"""

from __future__ import annotations

import numpy as np

import tir
from tir.intrin.cuda import get_wmma_intrin_group
from tir.script import tir as T


def gemm(m: int, n: int, k: int) -> tir.PrimFunc:
    """C = A @ B for float16 matrices of shapes (m, k) and (k, n); sums and C are float32."""

    @T.prim_func
    def main(A: T.Buffer((m, k), "float16"), B: T.Buffer((k, n), "float16"), C: T.Buffer((m, n), "float32")):
        for i, j, p in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += T.cast(A[vi, vp], "float32") * T.cast(B[vp, vj], "float32")

    return main


def scheduled(
    m: int, n: int, k: int, tile: int = 128, depth: int = 64, pipelined: bool = True, target: str = "cuda"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule, for sizes that are multiples of ``tile`` (of 32 or more) and ``depth`` (of 16)."""
    func = gemm(m, n, k)
    sch = tir.Schedule(func, target=target)
    schedule_tiles(sch, tile, depth, pipelined)
    return func, sch


def schedule_tiles(sch: tir.Schedule, tile: int, depth: int, pipelined: bool) -> None:
    """Schedule block C, a matrix multiplication, on tensor cores; what makes its inputs may be inlined into the copies."""
    group = get_wmma_intrin_group("shared.dyn", "global", "float16", "float32", False)
    block = sch.get_block("C")
    i, j, p = sch.get_loops(block)
    i, ii = sch.split(i, [None, 16])
    j, jj = sch.split(j, [None, 16])
    p, pp = sch.split(p, [None, 16])
    sch.reorder(i, j, p, ii, jj, pp)
    sch.blockize(ii)
    outer = sch.get_block("C_o")
    i, j, p = sch.get_loops(outer)
    by, ty, yi = sch.split(i, [None, 2, tile // 32])
    bx, tz, xi = sch.split(j, [None, 2, tile // 32])
    po, pi = sch.split(p, [None, depth // 16])
    sch.reorder(by, bx, ty, tz, po, pi, yi, xi)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tz, "threadIdx.z")):
        sch.bind(loop, axis)

    for number in range(2):
        shared = sch.cache_read(outer, number, "shared.dyn")
        for producer in sch.get_producers(shared):
            sch.compute_inline(producer)
        sch.compute_at(shared, po)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, fy, fz, fx, lanes = sch.split(fused, [None, 2, 2, 32, 8])
        for loop, axis in ((fy, "threadIdx.y"), (fz, "threadIdx.z"), (fx, "threadIdx.x")):
            sch.bind(loop, axis)
        sch.vectorize(lanes)
        sch.storage_align(shared, 0, axis=0, factor=16, offset=8)

    sums = sch.cache_write(outer, 0, "wmma.accumulator")
    sch.reverse_compute_at(sums, tz)
    loads = []
    for number, scope in enumerate(("wmma.matrix_a", "wmma.matrix_b")):
        fragment = sch.cache_read(outer, number, scope)
        sch.compute_at(fragment, pi)
        loads.append(fragment)
    init = sch.decompose_reduction(outer, po)

    sch.tensorize(inner_of(sch, init), group["init"])
    for fragment, name in ((loads[0], "load_a"), (loads[1], "load_b"), (sums, "store")):
        rows, columns = sch.get_loops(fragment)[-2:]
        r0, r1 = sch.split(rows, [None, 16])
        c0, c1 = sch.split(columns, [None, 16])
        sch.reorder(r0, c0, r1, c1)
        sch.tensorize(r1, group[name])
    sch.tensorize(inner_of(sch, outer), group["compute"])
    if pipelined:
        sch.annotate(po, "software_pipeline_stage", [0, 0, 2])
        sch.annotate(po, "software_pipeline_order", [0, 1, 2])
        sch.annotate(po, "software_pipeline_async_stages", [0])


def inner_of(sch: tir.Schedule, block: tir.schedule.BlockRV) -> tir.schedule.LoopRV:
    """The outermost loop inside ``block``: that of the tile which the tensor cores take."""
    return sch.get_loops(sch.get_child_blocks(block)[0])[0]


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(64, 64, 192, tile=64)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
