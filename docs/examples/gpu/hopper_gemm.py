"""Half-precision matrix multiplication for Hopper (sm_90a), by hand: a producer warpgroup and two that multiply.

One thread of the first warpgroup keeps a ring of four tiles of A and B filled, by copies of the copy engine (TMA);
the other two multiply 64 x 256 sums each, from shared memory (``wgmma``). They never meet at a barrier of the block:
for each stage, one transaction barrier counts the bytes that have arrived, and another the warps that have done with them.
The wait for a stage's n-th filling is for the phase of parity n % 2. The warpgroups share the registers as they need them.

Tiles are swizzled in shared memory by 128 bytes, which is what one row of 64 float16 takes. The copy engine fills zeros
beyond the matrices, so that no size needs to be a multiple of a tile; rows are multiples of 16 bytes.
"""

from __future__ import annotations

import numpy as np

import tir
from tir.script import tir as T

TARGET = "cuda -arch=sm_90a"
ROWS, COLUMNS, DEPTH = 128, 256, 64  # of a tile of C, and of k in a stage
STAGES = 4
PRODUCER = 128  # threads of the warpgroup that copies
THREADS = PRODUCER + 256


def full_of(step):
    """The barrier of the bytes of a step."""
    return step % STAGES


def empty_of(step):
    """The barrier of the warps that have done with a step."""
    return STAGES + step % STAGES


def turn(step):
    """The parity of the filling of the ring to which a step belongs."""
    return step // STAGES % 2


def place(bx, tx, r, across):
    """The row and the column in C of the r-th sum of a thread; a row of tiles has ``across``."""
    row = bx // across * ROWS + (tx - PRODUCER) // 32 * 16 + tx % 32 // 4 + r // 2 % 2 * 8
    return row, bx % across * COLUMNS + r // 4 * 8 + tx % 4 * 2 + r % 2


def gemm(m: int, n: int, k: int) -> tir.PrimFunc:
    """C = A @ B.T for float16 matrices of shapes (m, k) and (n, k), in float32; ``k`` is a multiple of 8."""
    across, steps = -(-n // COLUMNS), -(-k // DEPTH)
    blocks = -(-m // ROWS) * across

    @T.prim_func
    def main(A: T.Buffer((m, k), "float16"), B: T.Buffer((n, k), "float16"), C: T.Buffer((m, n), "float32")):
        bx = T.launch_thread("blockIdx.x", blocks)
        tx = T.launch_thread("threadIdx.x", THREADS)
        rows = T.alloc_buffer((STAGES, ROWS, DEPTH), "float16", scope="shared.dyn")
        columns = T.alloc_buffer((STAGES, COLUMNS, DEPTH), "float16", scope="shared.dyn")
        sums = T.alloc_buffer((COLUMNS // 2,), "float32", scope="local")
        T.create_barriers(2 * STAGES)
        if tx == 0:
            for s in range(STAGES):
                T.ptx_init_barrier_thread_count(full_of(s), 1)
                T.ptx_init_barrier_thread_count(empty_of(s), 8)
            T.ptx_fence_barrier_init()
        T.tvm_storage_sync("shared")
        if tx < PRODUCER:
            T.ptx_setmaxnreg(40, 0)
            if tx == 0:
                for i in range(steps):
                    T.ptx_wait_barrier(empty_of(i), 1 - turn(i))
                    T.ptx_arrive_barrier_expect_tx(full_of(i), (ROWS + COLUMNS) * DEPTH * 2)
                    T.ptx_cp_async_bulk_tensor(
                        rows.data,
                        i % STAGES * ROWS * DEPTH,
                        T.tensor_map(A, (ROWS, DEPTH), swizzle=128),
                        full_of(i),
                        bx // across * ROWS,
                        i * DEPTH,
                    )
                    T.ptx_cp_async_bulk_tensor(
                        columns.data,
                        i % STAGES * COLUMNS * DEPTH,
                        T.tensor_map(B, (COLUMNS, DEPTH), swizzle=128),
                        full_of(i),
                        bx % across * COLUMNS,
                        i * DEPTH,
                    )
        else:
            T.ptx_setmaxnreg(232, 1)
            for i in range(steps):
                T.ptx_wait_barrier(full_of(i), turn(i))
                T.ptx_wgmma_fence()
                for p in T.unroll(DEPTH // 16):
                    T.ptx_wgmma(
                        "m64n256k16",
                        "fp16",
                        "fp16",
                        "fp32",
                        sums.data,
                        0,
                        rows.data,
                        (i % STAGES * ROWS + (tx // 128 - 1) * 64) * DEPTH + p * 16,
                        0,
                        1024,
                        128,
                        0,
                        columns.data,
                        i % STAGES * COLUMNS * DEPTH + p * 16,
                        0,
                        1024,
                        128,
                        0,
                        i + p > 0,
                    )
                T.ptx_wgmma_commit_group()
                T.ptx_wgmma_wait_group(1)  # the products of the step before are done
                if i > 0 and tx % 32 == 0:
                    T.ptx_arrive_barrier(empty_of(i - 1))
            T.ptx_wgmma_wait_group(0)
            for r in T.unroll(COLUMNS // 2):
                row, column = place(bx, tx, r, across)
                if row < m and column < n:
                    C[row, column] = sums[r]

    return main


def scheduled(m: int, n: int, k: int) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program and its schedule: there is no step, the kernel is written by hand."""
    func = gemm(m, n, k)
    return func, tir.Schedule(func, target=TARGET)


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(120, 250, 328)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(4096, 4096, 4096)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference, TARGET)
