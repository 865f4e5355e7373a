"""Attention of one new query to all earlier keys, which lie in pages of memory wherever there was room (paged decoding).

A block table says in which pages the keys and values of a sequence are; lengths differ. Little is computed for what is read,
so all heads of queries that share a head of keys (GQA) work on one copy of it, a warp for each. A lane has the score of
one of 32 keys, and in the sum of values some columns. One sequence would leave most of the chip idle: it is split
among ``splits`` thread blocks, and a second kernel combines what they found, each result scaled by what its greatest
score is below the greatest of all.
"""

from __future__ import annotations

import math

import numpy as np
from _fragments import ALL, PIECE

import tir
from tir.script import tir as T

KEYS = 32  # of a step, one a lane


@T.macro
def copy_keys(target, source, table, b, h, first, length, page, heads, depth, stride, thread, threads):
    """Begin to copy the rows of ``KEYS`` keys or values of a sequence from number ``first``; zeros behind the last."""
    for x in T.unroll(T.ceildiv(KEYS * depth // PIECE, threads)):
        piece: T.int32 = x * threads + thread
        row: T.int32 = piece // (depth // PIECE)
        column: T.int32 = piece % (depth // PIECE) * PIECE
        at: T.int32 = T.min(first + row, length - 1)
        if row < KEYS:
            T.evaluate(
                T.ptx_cp_async(
                    "float16", target, row * stride + column, source.data,
                    ((table[b, at // page] * page + at % page) * heads + h) * depth + column, 16, first + row < length,
                )
            )  # fmt: skip


@T.macro
def combine(result, tops, totals, parts, b, h, d, splits):
    """One element of the result from those of all parts: their sums, scaled as by the greatest score of all."""
    found = T.alloc_buffer((3,), "float32", scope="local")  # the greatest score, the sum of weights, of weighted values
    found[0] = T.float32("-inf")
    found[1] = T.float32(0)
    found[2] = T.float32(0)
    for s in range(splits):
        found[0] = T.max(found[0], tops[s, b, h])
    for s in range(splits):
        found[1] = found[1] + totals[s, b, h] * T.exp2(tops[s, b, h] - found[0])
        found[2] = found[2] + parts[s, b, h, d] * T.exp2(tops[s, b, h] - found[0])
    result[b, h, d] = found[2] / found[1]


def decode(
    batch: int, heads: int, shared_by: int, depth: int, page: int, pages: int, most: int, splits: int
) -> tir.PrimFunc:
    """C = softmax of Q @ K^T / sqrt(depth), @ V for one query of each sequence and head: Q and C (batch, heads, depth), K and
    V (pages, page, heads // shared_by, depth), float16, C in float32; ``table`` (batch, most) has the pages of each
    sequence, and ``lengths`` (1 or more) how many keys it has. ``depth`` is a multiple of 64.
    """
    few, threads, columns = heads // shared_by, 32 * shared_by, depth // 32
    stride = depth + PIECE  # in shared memory: rows that are read at once lie in different banks
    scale = math.log2(math.e) / math.sqrt(depth)

    @T.prim_func
    def main(
        Q: T.Buffer((batch, heads, depth), "float16"),
        K: T.Buffer((pages, page, few, depth), "float16"),
        V: T.Buffer((pages, page, few, depth), "float16"),
        table: T.Buffer((batch, most), "int32"),
        lengths: T.Buffer((batch,), "int32"),
        C: T.Buffer((batch, heads, depth), "float32"),
    ):
        tops = T.alloc_buffer((splits, batch, heads), "float32")
        totals = T.alloc_buffer((splits, batch, heads), "float32")
        parts = T.alloc_buffer((splits, batch, heads, depth), "float32")
        with T.launch_thread("blockIdx.x", splits) as s:
            h = T.launch_thread("blockIdx.y", few)
            b = T.launch_thread("blockIdx.z", batch)
            keys = T.allocate((KEYS * stride,), "float16", "shared")
            values = T.allocate((KEYS * stride,), "float16", "shared")
            warp = T.launch_thread("threadIdx.y", shared_by)
            lane = T.launch_thread("threadIdx.x", 32)
            held_k = T.decl_buffer((KEYS * stride,), "float16", data=keys, scope="shared")
            held_v = T.decl_buffer((KEYS * stride,), "float16", data=values, scope="shared")
            query = T.alloc_buffer((depth,), "float16", scope="local")
            key = T.alloc_buffer((PIECE,), "float16", scope="local")
            value = T.alloc_buffer((columns,), "float16", scope="local")
            result = T.alloc_buffer((columns,), "float32", scope="local")
            row = T.alloc_buffer((4,), "float32", scope="local")  # the greatest score, the sum, a score, its weight
            length: T.int32 = lengths[b]
            chunk: T.int32 = T.ceildiv(T.ceildiv(length, splits), KEYS) * KEYS
            row[0] = T.float32("-inf")
            row[1] = T.float32(0)
            for c in T.unroll(columns):
                result[c] = T.float32(0)
            for d in T.unroll(depth // PIECE):
                query[T.ramp(d * PIECE, 1, PIECE)] = Q[b, h * shared_by + warp, T.ramp(d * PIECE, 1, PIECE)]
            for o in range(T.max(T.min(chunk, length - s * chunk) + KEYS - 1, 0) // KEYS):
                first: T.int32 = s * chunk + o * KEYS
                T.evaluate(T.tvm_storage_sync("shared"))
                copy_keys(keys, K, table, b, h, first, length, page, few, depth, stride, warp * 32 + lane, threads)
                copy_keys(values, V, table, b, h, first, length, page, few, depth, stride, warp * 32 + lane, threads)
                T.evaluate(T.ptx_commit_group())
                T.evaluate(T.ptx_wait_group(0))
                T.evaluate(T.tvm_storage_sync("shared"))
                row[2] = T.float32(0)
                for d in T.unroll(depth // PIECE):
                    key[T.ramp(0, 1, PIECE)] = held_k[T.ramp(lane * stride + d * PIECE, 1, PIECE)]
                    for e in T.unroll(PIECE):
                        row[2] = row[2] + T.Cast("float32", key[e]) * T.Cast("float32", query[d * PIECE + e])
                row[2] = T.if_then_else(first + lane < length, row[2] * T.float32(scale), T.float32("-inf"))
                row[3] = T.max(row[0], row[2])
                for step in T.unroll(5):
                    row[3] = T.max(row[3], T.tvm_warp_shuffle_xor(T.uint32(ALL), row[3], 1 << step, 32, 32))
                row[2] = T.exp2(row[2] - row[3])
                row[0] = T.exp2(row[0] - row[3])
                row[1] = row[1] * row[0] + row[2]
                for c in T.unroll(columns):
                    result[c] = result[c] * row[0]
                row[0] = row[3]
                for t in T.unroll(KEYS):
                    row[3] = T.tvm_warp_shuffle(T.uint32(ALL), row[2], t, 32, 32)
                    value[T.ramp(0, 1, columns)] = held_v[T.ramp(t * stride + lane * columns, 1, columns)]
                    for c in T.unroll(columns):
                        result[c] = result[c] + row[3] * T.Cast("float32", value[c])
            for step in T.unroll(5):
                row[1] = row[1] + T.tvm_warp_shuffle_xor(T.uint32(ALL), row[1], 1 << step, 32, 32)
            if lane == 0:
                tops[s, b, h * shared_by + warp] = row[0]
                totals[s, b, h * shared_by + warp] = row[1]
            for c in T.unroll(columns):
                parts[s, b, h * shared_by + warp, lane * columns + c] = result[c]
        with T.launch_thread("blockIdx.x", heads) as h:
            b = T.launch_thread("blockIdx.y", batch)
            d = T.launch_thread("threadIdx.x", depth)
            combine(C, tops, totals, parts, b, h, d, splits)

    return main


def inputs(func: tir.PrimFunc, rng: np.random.Generator) -> list[np.ndarray]:
    """Random keys, in pages that each belong to one sequence, and sequences of any length, the first as long as may be."""
    q, k, v, table, lengths, c = ([int(s) for s in func.buffer_map[p].shape] for p in func.params)
    longest = table[1] * k[1]
    return [
        *(rng.standard_normal(shape).astype("float16") for shape in (q, k, v)),
        rng.permutation(k[0])[: table[0] * table[1]].reshape(table).astype("int32"),
        np.array([longest, *rng.integers(1, longest + 1, lengths[0] - 1)], "int32"),
        np.zeros(c, "float32"),
    ]


def scheduled(
    batch: int,
    heads: int,
    shared_by: int,
    depth: int,
    page: int,
    most: int,
    splits: int,
    target: str = "cuda -arch=sm_80",
) -> tuple[tir.PrimFunc, tir.Schedule]:
    """The program, which is written for its threads: no step is left for a schedule."""
    func = decode(batch, heads, shared_by, depth, page, batch * most + 3, most, splits)
    return func, tir.Schedule(func, target=target)


def small() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(3, 4, 2, 64, page=8, most=12, splits=3)


def full() -> tuple[tir.PrimFunc, tir.Schedule]:
    return scheduled(16, 32, 4, 128, page=16, most=256, splits=8)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, table: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    table, lengths = table.astype(int), lengths.astype(int)
    found = np.zeros(q.shape)
    for b, length in enumerate(lengths):
        keys, values = (x[table[b]].reshape(-1, *x.shape[2:])[:length] for x in (k, v))
        for h in range(q.shape[1]):
            shared = h // (q.shape[1] // k.shape[2])
            scores = keys[:, shared] @ q[b, h] / math.sqrt(q.shape[2])
            e = np.exp(scores - scores.max())
            found[b, h] = e @ values[:, shared] / e.sum()
    return found


if __name__ == "__main__":
    import _example

    _example.show(small, full, reference, inputs=inputs)
