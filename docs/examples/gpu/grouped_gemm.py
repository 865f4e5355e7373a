"""Products of several sizes in one launch (grouped gemm), as a layer of experts or of adapters needs them.

The matrices of all products lie one after another; a table, which is data, has the sizes and the places of each, and the
number of tiles before it. A thread block finds in it the product that its tile belongs to. Pieces of rows past the edge of
a matrix are copied as zeros, and sums past the edge are not stored, so that no size needs to be a multiple of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from _fragments import PIECE, column_of, load_left, load_right, multiply, row_of

import tir
from tir.script import tir as T

Size = tuple[int, int]  # rows of A, and of B
ROWS, DEPTH, A_AT, B_AT, C_AT, BEFORE = range(6)  # columns of the table; its last row has the number of all tiles


@T.macro
def copy_tile(target, stride, source, first, pitch, rows, columns, has_rows, has_columns, thread, threads):
    """Begin to copy a tile of ``rows`` by ``columns`` from element ``first`` of rows at a distance of ``pitch``: zeros behind
    the ``has_rows`` and ``has_columns`` that there are."""
    for x in T.unroll(rows * columns // PIECE // threads):
        row: T.int32 = (x * threads + thread) // (columns // PIECE)
        column: T.int32 = (x * threads + thread) % (columns // PIECE) * PIECE
        T.evaluate(
            T.ptx_cp_async(
                "float16", target[0], target[1] + row * stride + column, source.data, first + row * pitch + column, 16,
                row < has_rows and column < has_columns,
            )
        )  # fmt: skip


def gemm(sizes: Sequence[Size], n: int, tile: int, depth: int) -> tir.PrimFunc:
    """C = A @ B for each product of ``table``: A (m, k), B (k, n), C (m, n), float16, C in float32. There are as many, with
    as many rows in all, as ``sizes`` (m, k) says. ``tile`` and ``depth`` are multiples of 64, n and every k of 8.
    """
    groups, blocks, across = len(sizes), tiles_of(sizes, n, tile)[-1], -(-n // tile)
    stride_a, stride_b = depth + PIECE, tile + PIECE
    held_a, held_b = tile * stride_a, depth * stride_b
    each = tile // 32  # fragments of a warp in each direction

    def group_of(number, table):
        """How many of the other products begin at or before tile ``number``."""
        begun = (T.Cast("int32", table[g, BEFORE] <= number) for g in range(1, groups))
        return reduce(lambda x, y: x + y, begun, T.int32(0))

    @T.prim_func
    def main(
        A: T.Buffer((sum(m * k for m, k in sizes),), "float16"),
        B: T.Buffer((sum(k * n for _, k in sizes),), "float16"),
        table: T.Buffer((groups + 1, 6), "int32"),
        C: T.Buffer((sum(m for m, _ in sizes), n), "float32"),
    ):
        block = T.launch_thread("blockIdx.x", blocks)
        left_tiles = T.allocate((2 * held_a,), "float16", "shared.dyn")
        right_tiles = T.allocate((2 * held_b,), "float16", "shared.dyn")
        ty = T.launch_thread("threadIdx.z", 2)
        tx = T.launch_thread("threadIdx.y", 2)
        lane = T.launch_thread("threadIdx.x", 32)
        left = T.allocate((each * 8,), "float16", "local")
        right = T.allocate((8,), "float16", "local")
        sums_data = T.allocate((each * each * 8,), "float32", "local")
        sums = T.decl_buffer((each, each, 8), "float32", data=sums_data, scope="local")
        thread: T.int32 = (ty * 2 + tx) * 32 + lane
        g: T.int32 = group_of(block, table)
        m: T.int32 = table[g, ROWS]
        k: T.int32 = table[g, DEPTH]
        row: T.int32 = (block - table[g, BEFORE]) // across * tile
        column: T.int32 = (block - table[g, BEFORE]) % across * tile
        a: T.int32 = table[g, A_AT] + row * k
        b: T.int32 = table[g, B_AT] + column
        for y, x, e in T.grid(each, each, 8):
            sums[y, x, e] = T.float32(0)
        if block < table[groups, BEFORE]:
            copy_tile((left_tiles, 0), stride_a, A, a, k, tile, depth, m - row, k, thread, 128)
            copy_tile((right_tiles, 0), stride_b, B, b, n, depth, tile, k, n - column, thread, 128)
            T.evaluate(T.ptx_commit_group())
            for o in range(T.ceildiv(k, depth)):
                here: T.int32 = o % 2
                T.evaluate(T.ptx_wait_group(0))
                T.evaluate(T.tvm_storage_sync("shared.dyn"))
                if (o + 1) * depth < k:
                    done: T.int32 = (o + 1) * depth
                    copy_tile(
                        (left_tiles, (1 - here) * held_a), stride_a, A, a + done, k, tile, depth, m - row, k - done,
                        thread, 128,
                    )  # fmt: skip
                    copy_tile(
                        (right_tiles, (1 - here) * held_b), stride_b, B, b + done * n, n, depth, tile, k - done,
                        n - column, thread, 128,
                    )  # fmt: skip
                T.evaluate(T.ptx_commit_group())
                for p in T.unroll(depth // 16):
                    for y in T.unroll(each):
                        first: T.int32 = here * held_a + (ty * each + y) * 16 * stride_a + p * 16
                        load_left(left, y, left_tiles, first, stride_a, lane)
                    for x in T.unroll(each):
                        first: T.int32 = here * held_b + p * 16 * stride_b + (tx * each + x) * 16
                        load_right(right, right_tiles, first, stride_b, lane)
                        for y in T.unroll(each):
                            multiply(sums_data, y * each + x, left, y, right)
            for y, x, e in T.grid(each, each, 8):
                i: T.int32 = row + (ty * each + y) * 16 + row_of(lane, e)
                j: T.int32 = column + (tx * each + x) * 16 + column_of(lane, e)
                if i < m and j < n:
                    C[table[g, C_AT] + i, j] = sums[y, x, e]

    return main


def tiles_of(sizes: Sequence[Size], n: int, tile: int) -> list[int]:
    """The number of tiles before each product, and of all."""
    return [sum(-(-m // tile) * -(-n // tile) for m, _ in sizes[:g]) for g in range(len(sizes) + 1)]


def table_of(sizes: Sequence[Size], n: int, tile: int) -> np.ndarray:
    """The table of :func:`gemm`, for matrices that lie one after another."""
    rows, a, b, c = [], 0, 0, 0
    for (m, k), before in zip([*sizes, (0, 0)], tiles_of(sizes, n, tile)):
        rows.append((m, k, a, b, c, before))
        a, b, c = a + m * k, b + k * n, c + m
    return np.array(rows, "int32")


SMALL = ((20, 24), (5, 136), (70, 64)), 72, 64
FULL = tuple((m, 4096) for m in (17, 300, 1024, 64, 2, 800, 129, 1760)), 4096, 128


def inputs(func: tir.PrimFunc, rng: np.random.Generator) -> list[np.ndarray]:
    """Random matrices, the table of the sizes that ``func`` is made for, and room for the results."""
    a, b, table, c = ([int(s) for s in func.buffer_map[p].shape] for p in func.params)
    made = next(x for x in (table_of(*SMALL), table_of(*FULL)) if len(x) == table[0] and x[-1, A_AT] == a[0])
    return [
        rng.standard_normal(a).astype("float16"),
        rng.standard_normal(b).astype("float16"),
        made,
        np.zeros(c, "float32"),
    ]


def scheduled(
    sizes: Sequence[Size], n: int, tile: int = 128, depth: int = 64, target: str = "cuda -arch=sm_80"
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program, which is written for its threads: no step is left for a schedule."""
    func = gemm(sizes, n, tile, depth)
    return func, tir.Schedule(func, target=target)


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(*SMALL)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(*FULL)


def reference(a: np.ndarray, b: np.ndarray, table: np.ndarray) -> np.ndarray:
    table = table.astype(int)
    n = len(b) // table[:-1, DEPTH].sum()
    found = []
    for m, k, at_a, at_b, *_ in table[:-1]:
        found.append(a[at_a : at_a + m * k].reshape(m, k) @ b[at_b : at_b + k * n].reshape(k, n))
    return np.concatenate(found)


def operations(a: np.ndarray, b: np.ndarray, table: np.ndarray, c: np.ndarray) -> float:
    return 2.0 * c.shape[1] * float((table[:, ROWS].astype(float) * table[:, DEPTH]).sum())


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference, inputs=inputs)
