"""Attention for one head: softmax(Q @ K.T / sqrt(d)) @ V."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..script import tir as T


def attention(queries: int, keys: int, depth: int) -> PrimFunc:
    """B = softmax(Q @ K.T / sqrt(depth)) @ V for float32 Q (queries, depth), K and V (keys, depth), B (queries, depth).

    >>> [b.name for b in attention(8, 10, 4).buffers()]
    ['Q', 'K', 'V', 'B']
    """
    scale = depth**-0.5

    @T.prim_func
    def attention(
        Q: T.Buffer((queries, depth), "float32"),
        K: T.Buffer((keys, depth), "float32"),
        V: T.Buffer((keys, depth), "float32"),
        B: T.Buffer((queries, depth), "float32"),
    ):
        score = T.alloc_buffer((queries, keys), "float32")
        most = T.alloc_buffer((queries,), "float32")
        power = T.alloc_buffer((queries, keys), "float32")
        total = T.alloc_buffer((queries,), "float32")
        mixed = T.alloc_buffer((queries, depth), "float32")
        for i, j, d in T.grid(queries, keys, depth):
            with T.block("score"):
                vi, vj, vd = T.axis.remap("SSR", [i, j, d])
                with T.init():
                    score[vi, vj] = T.float32(0)
                score[vi, vj] += Q[vi, vd] * K[vj, vd]
        for i, j in T.grid(queries, keys):
            with T.block("most"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    most[vi] = T.min_value("float32")
                most[vi] = T.max(most[vi], score[vi, vj] * T.float32(scale))
        for i, j in T.grid(queries, keys):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", [i, j])
                power[vi, vj] = T.exp(score[vi, vj] * T.float32(scale) - most[vi])
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
