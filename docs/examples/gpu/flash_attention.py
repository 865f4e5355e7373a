"""Attention of float16 queries to the keys before them, without a matrix of all scores in memory (flash attention).

A thread block takes a tile of queries of one head, each of its warps 16 rows, and goes through the keys tile by tile.
Scores and results are fragments of tensor cores in registers. Softmax is made on the way: each row keeps the greatest
score so far and the sum of its exponentials, and when a greater one comes, the sum and the row of the result are scaled
down by what that changes. Fragments of sums are laid out as those of a left operand, so the exponentials go into the
product with V as they are. While a tile is worked on, the next is on its way to shared memory; tiles behind the diagonal
are left out. Several heads of queries share a head of keys and values (GQA).
"""

from __future__ import annotations

import math

import numpy as np
from _fragments import ALL, PIECE, column_of, load_left, load_right, load_right_transposed, multiply, row_of

import tir
from tir.script import tir as T

TOLERANCE = 2e-3  # exponentials are rounded to float16 for the second product


@T.macro
def copy_rows(target, at, stride, source, first, rows, depth, thread, threads):
    """Begin to copy ``rows`` rows of ``depth`` elements from element ``first`` of a buffer to ``at`` in shared memory."""
    for x in T.unroll(rows * depth // PIECE // threads):
        T.evaluate(
            T.ptx_cp_async(
                "float16",
                target,
                at
                + (x * threads + thread) // (depth // PIECE) * stride
                + (x * threads + thread) % (depth // PIECE) * PIECE,
                source.data,
                first + (x * threads + thread) * PIECE,
                16,
            )
        )


@T.macro
def hide_later(scores, of_keys, first, row, lane):
    """Take out the scores of keys behind their query; the first of the tile are of key ``first`` and query ``row``."""
    for n, e in T.grid(of_keys, 8):
        if first + n * 16 + column_of(lane, e) > row + row_of(lane, e):
            scores[n, e] = T.float32("-inf")


@T.macro
def soften(r, scores, weights, result, top, total, now, scale, of_keys, of_depth):
    """Row r of each lane's fragments (0: the upper half, 1: the lower): the weights of its ``scores``, and ``top``,
    ``total`` and ``result`` as they are after them. The four lanes of a row find its greatest score together."""
    now[0] = top[r]
    for n, e in T.grid(of_keys, 4):
        now[0] = T.max(now[0], scores[n, e // 2 * 4 + r * 2 + e % 2])
    for step in T.unroll(2):
        now[0] = T.max(now[0], T.tvm_warp_shuffle_xor(T.uint32(ALL), now[0], 1 + step, 32, 32))
    now[1] = T.exp2((top[r] - now[0]) * T.float32(scale))
    top[r] = now[0]
    total[r] = total[r] * now[1]
    for d, e in T.grid(of_depth, 4):
        result[d, e // 2 * 4 + r * 2 + e % 2] = result[d, e // 2 * 4 + r * 2 + e % 2] * now[1]
    for n, e in T.grid(of_keys, 4):
        now[1] = T.exp2((scores[n, e // 2 * 4 + r * 2 + e % 2] - now[0]) * T.float32(scale))
        total[r] = total[r] + now[1]
        weights[n, e // 2 * 4 + r * 2 + e % 2] = T.Cast("float16", now[1])


def attention(batch: int, heads: int, shared_by: int, length: int, depth: int, rows: int, keys: int) -> tir.PrimFunc:
    """C = softmax of causal Q @ K^T / sqrt(depth), @ V: Q and C (batch, heads, length, depth), K and V with a head for
    each ``shared_by`` of them; float16, C in float32. ``rows`` and ``keys`` (of a tile) divide ``length``, 16 divides
    them and ``depth``.
    """
    warps, of_keys, of_depth = rows // 16, keys // 16, depth // 16
    threads = 32 * warps
    stride = depth + PIECE  # in shared memory: the eight rows of a matrix lie in different banks
    scale = math.log2(math.e) / math.sqrt(depth)

    @T.prim_func
    def main(
        Q: T.Buffer((batch, heads, length, depth), "float16"),
        K: T.Buffer((batch, heads // shared_by, length, depth), "float16"),
        V: T.Buffer((batch, heads // shared_by, length, depth), "float16"),
        C: T.Buffer((batch, heads, length, depth), "float32"),
    ):
        tile = T.launch_thread("blockIdx.x", length // rows)
        h = T.launch_thread("blockIdx.y", heads)
        b = T.launch_thread("blockIdx.z", batch)
        queries = T.allocate((rows * stride,), "float16", "shared.dyn")
        held = T.allocate((4 * keys * stride,), "float16", "shared.dyn")  # K and V of two tiles
        warp = T.launch_thread("threadIdx.y", warps)
        lane = T.launch_thread("threadIdx.x", 32)
        left = T.allocate((of_depth * 8,), "float16", "local")
        right = T.allocate((8,), "float16", "local")
        weights_data = T.allocate((of_keys * 8,), "float16", "local")
        scores_data = T.allocate((of_keys * 8,), "float32", "local")
        result_data = T.allocate((of_depth * 8,), "float32", "local")
        row_data = T.allocate((6,), "float32", "local")
        weights = T.decl_buffer((of_keys, 8), "float16", data=weights_data, scope="local")
        scores = T.decl_buffer((of_keys, 8), "float32", data=scores_data, scope="local")
        result = T.decl_buffer((of_depth, 8), "float32", data=result_data, scope="local")
        top = T.decl_buffer((2,), "float32", data=row_data, scope="local")
        total = T.decl_buffer((2,), "float32", data=row_data, elem_offset=2, scope="local")
        now = T.decl_buffer((2,), "float32", data=row_data, elem_offset=4, scope="local")
        thread: T.int32 = warp * 32 + lane
        begin: T.int32 = (b * (heads // shared_by) + h // shared_by) * length * depth
        for r in T.unroll(2):
            top[r] = T.float32("-inf")
            total[r] = T.float32(0)
        for d, e in T.grid(of_depth, 8):
            result[d, e] = T.float32(0)
        copy_rows(queries, 0, stride, Q, ((b * heads + h) * length + tile * rows) * depth, rows, depth, thread, threads)
        copy_rows(held, 0, stride, K, begin, keys, depth, thread, threads)
        copy_rows(held, keys * stride, stride, V, begin, keys, depth, thread, threads)
        T.evaluate(T.ptx_commit_group())
        for j in range(T.ceildiv((tile + 1) * rows, keys)):
            here: T.int32 = j % 2 * 2 * keys * stride
            T.evaluate(T.ptx_wait_group(0))
            T.evaluate(T.tvm_storage_sync("shared.dyn"))
            if (j + 1) * keys < (tile + 1) * rows:
                there: T.int32 = 2 * keys * stride - here
                ahead: T.int32 = begin + (j + 1) * keys * depth
                copy_rows(held, there, stride, K, ahead, keys, depth, thread, threads)
                copy_rows(held, there + keys * stride, stride, V, ahead, keys, depth, thread, threads)
            T.evaluate(T.ptx_commit_group())
            if j == 0:
                for d in T.unroll(of_depth):
                    load_left(left, d, queries, warp * 16 * stride + d * 16, stride, lane)
            for n, e in T.grid(of_keys, 8):
                scores[n, e] = T.float32(0)
            for n, d in T.grid(of_keys, of_depth):
                load_right_transposed(right, held, here + n * 16 * stride + d * 16, stride, lane)
                multiply(scores.data, n, left, d, right)
            if (j + 1) * keys > tile * rows:
                hide_later(scores, of_keys, j * keys, tile * rows + warp * 16, lane)
            for r in T.unroll(2):
                soften(r, scores, weights, result, top, total, now, scale, of_keys, of_depth)
            for n, d in T.grid(of_keys, of_depth):
                load_right(right, held, here + (keys + n * 16) * stride + d * 16, stride, lane)
                multiply(result.data, d, weights.data, n, right)
        for r, step in T.grid(2, 2):
            total[r] = total[r] + T.tvm_warp_shuffle_xor(T.uint32(ALL), total[r], 1 + step, 32, 32)
        for d, e in T.grid(of_depth, 8):
            C[b, h, tile * rows + warp * 16 + row_of(lane, e), d * 16 + column_of(lane, e)] = (
                result[d, e] / total[e // 2 % 2]
            )

    return main


def scheduled(
    batch: int,
    heads: int,
    shared_by: int,
    length: int,
    depth: int,
    rows: int = 64,
    keys: int = 64,
    target: str = "cuda -arch=sm_80",
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program, which is written for its threads: no step is left for a schedule."""
    func = attention(batch, heads, shared_by, length, depth, rows, keys)
    return func, tir.Schedule(func, target=target)


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(1, 2, 2, 64, 64, rows=32, keys=16)


def full(**options) -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(1, 32, 4, 4096, 128, keys=32, **options)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat(times, axis=1), v.repeat(times, axis=1)
    scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=3, keepdims=True))
    return e / e.sum(axis=3, keepdims=True) @ v


def operations(q: np.ndarray, k: np.ndarray, v: np.ndarray, c: np.ndarray) -> float:
    """Of both products, of which the half behind the diagonal is not made."""
    return 2.0 * q.size * q.shape[2]


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference)
