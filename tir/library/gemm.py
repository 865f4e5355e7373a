"""Products: matrix by matrix in float32, many of them, matrix by vector, bytes and bfloat16."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..script import tir as T

# left operand, right operand, sum
KINDS = {"int8": ("uint8", "int8", "int32"), "bfloat16": ("bfloat16", "bfloat16", "float32")}


def gemm(m: int, n: int, k: int) -> PrimFunc:
    """C = A @ B for float32 A (m, k), B (k, n), C (m, n).

    >>> [b.name for b in gemm(64, 48, 32).buffers()]
    ['A', 'B', 'C']
    """

    @T.prim_func
    def gemm(A: T.Buffer((m, k), "float32"), B: T.Buffer((k, n), "float32"), C: T.Buffer((m, n), "float32")):
        for i, j, p in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vp] * B[vp, vj]

    return gemm


def batched_gemm(count: int, m: int, n: int, k: int) -> PrimFunc:
    """C[b] = A[b] @ B[b] for float32 A (count, m, k), B (count, k, n), C (count, m, n).

    >>> [b.name for b in batched_gemm(3, 64, 48, 32).buffers()]
    ['A', 'B', 'C']
    """

    @T.prim_func
    def batched_gemm(
        A: T.Buffer((count, m, k), "float32"),
        B: T.Buffer((count, k, n), "float32"),
        C: T.Buffer((count, m, n), "float32"),
    ):
        for b, i, j, p in T.grid(count, m, n, k):
            with T.block("C"):
                vb, vi, vj, vp = T.axis.remap("SSSR", [b, i, j, p])
                with T.init():
                    C[vb, vi, vj] = T.float32(0)
                C[vb, vi, vj] += A[vb, vi, vp] * B[vb, vp, vj]

    return batched_gemm


def gemv(m: int, k: int) -> PrimFunc:
    """y = A @ x for float32 A (m, k), x (k,), y (m,).

    >>> [b.name for b in gemv(64, 48).buffers()]
    ['A', 'x', 'y']
    """

    @T.prim_func
    def gemv(A: T.Buffer((m, k), "float32"), x: T.Buffer((k,), "float32"), y: T.Buffer((m,), "float32")):
        for i, p in T.grid(m, k):
            with T.block("y"):
                vi, vp = T.axis.remap("SR", [i, p])
                with T.init():
                    y[vi] = T.float32(0)
                y[vi] += A[vi, vp] * x[vp]

    return gemv


def dot_gemm(m: int, n: int, k: int, kind: str = "int8") -> PrimFunc:
    """C = A @ B for A (m, k) and B (k, n), summed in C's wider type: uint8 by int8 in int32, bfloat16 in float32.

    >>> [b.name for b in dot_gemm(8, 16, 4).buffers()]
    ['A', 'B', 'C']
    """
    left, right, wide = KINDS[kind]

    @T.prim_func
    def gemm(A: T.Buffer((m, k), left), B: T.Buffer((k, n), right), C: T.Buffer((m, n), wide)):
        for i, j, p in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.cast(0, wide)
                C[vi, vj] += T.cast(A[vi, vp], wide) * T.cast(B[vp, vj], wide)

    return gemm
