"""Operations on the rows of a matrix: softmax, layer norm, sums of rows and of columns."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..script import tir as T


def softmax(rows: int, columns: int) -> PrimFunc:
    """B[i, :] = exp(A[i, :] - max) / sum for float32 A (rows, columns).

    >>> [b.name for b in softmax(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def softmax(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows, columns), "float32")):
        most = T.alloc_buffer((rows,), "float32")
        power = T.alloc_buffer((rows, columns), "float32")
        total = T.alloc_buffer((rows,), "float32")
        scale = T.alloc_buffer((rows,), "float32")
        for i, j in T.grid(rows, columns):
            with T.block("most"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    most[vi] = T.min_value("float32")
                most[vi] = T.max(most[vi], A[vi, vj])
        for i, j in T.grid(rows, columns):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", [i, j])
                power[vi, vj] = T.exp(A[vi, vj] - most[vi])
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += power[vi, vj]
        for i in range(rows):
            with T.block("scale"):
                vi = T.axis.spatial(rows, i)
                scale[vi] = T.float32(1) / total[vi]
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = power[vi, vj] * scale[vi]

    return softmax


def layer_norm(rows: int, columns: int, eps: float = 1e-5) -> PrimFunc:
    """B[i, :] = (A[i, :] - mean) / sqrt(variance + eps) * G + H for float32 A (rows, columns), G and H (columns,).

    >>> [b.name for b in layer_norm(4, 10).buffers()]
    ['A', 'G', 'H', 'B']
    """

    @T.prim_func
    def layer_norm(
        A: T.Buffer((rows, columns), "float32"),
        G: T.Buffer((columns,), "float32"),
        H: T.Buffer((columns,), "float32"),
        B: T.Buffer((rows, columns), "float32"),
    ):
        total = T.alloc_buffer((rows,), "float32")
        squares = T.alloc_buffer((rows,), "float32")
        scale = T.alloc_buffer((rows,), "float32")
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] += A[vi, vj] * T.float32(1 / columns)
        for i, j in T.grid(rows, columns):
            with T.block("squares"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    squares[vi] = T.float32(0)
                squares[vi] += (A[vi, vj] - total[vi]) * (A[vi, vj] - total[vi])
        for i in range(rows):
            with T.block("scale"):
                vi = T.axis.spatial(rows, i)
                scale[vi] = T.float32(1) / T.sqrt(squares[vi] * T.float32(1 / columns) + T.float32(eps))
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = (A[vi, vj] - total[vi]) * scale[vi] * G[vj] + H[vj]

    return layer_norm


def row_sum(rows: int, columns: int) -> PrimFunc:
    """B[i] = sum over j of A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in row_sum(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def row_sum(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((rows,), "float32")):
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vj]

    return row_sum


def column_sum(rows: int, columns: int) -> PrimFunc:
    """B[j] = sum over i of A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in column_sum(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def column_sum(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((columns,), "float32")):
        for j, i in T.grid(columns, rows):
            with T.block("total"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    B[vj] = T.float32(0)
                B[vj] += A[vi, vj]

    return column_sum
