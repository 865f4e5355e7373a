"""Memory-bound programs: chains of elementwise operations, transposition, a two-stage blur."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from ..function import PrimFunc
from ..script import tir as T


def gelu_chain(size: int) -> PrimFunc:
    """B = gelu(A * S + H) for float32 A, S, H, B (size,), with gelu(x) = x / 2 * (1 + erf(x / sqrt 2)), in four steps.

    >>> [b.name for b in gelu_chain(10).buffers()]
    ['A', 'S', 'H', 'B']
    """

    @T.prim_func
    def gelu_chain(
        A: T.Buffer((size,), "float32"),
        S: T.Buffer((size,), "float32"),
        H: T.Buffer((size,), "float32"),
        B: T.Buffer((size,), "float32"),
    ):
        scaled = T.alloc_buffer((size,), "float32")
        shifted = T.alloc_buffer((size,), "float32")
        error = T.alloc_buffer((size,), "float32")
        for i in range(size):
            with T.block("scaled"):
                vi = T.axis.spatial(size, i)
                scaled[vi] = A[vi] * S[vi]
        for i in range(size):
            with T.block("shifted"):
                vi = T.axis.spatial(size, i)
                shifted[vi] = scaled[vi] + H[vi]
        for i in range(size):
            with T.block("error"):
                vi = T.axis.spatial(size, i)
                error[vi] = T.erf(shifted[vi] * T.float32(0.7071067811865476))
        for i in range(size):
            with T.block("out"):
                vi = T.axis.spatial(size, i)
                B[vi] = shifted[vi] * T.float32(0.5) * (error[vi] + T.float32(1))

    return gelu_chain


def scale_add(size: int) -> PrimFunc:
    """B = A * 3 + 1 for float32 A, B (size,).

    >>> [b.name for b in scale_add(10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def scale_add(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
        for i in range(size):
            with T.block("out"):
                vi = T.axis.spatial(size, i)
                B[vi] = A[vi] * T.float32(3) + T.float32(1)

    return scale_add


def transpose(rows: int, columns: int) -> PrimFunc:
    """B[j, i] = A[i, j] for float32 A (rows, columns).

    >>> [b.name for b in transpose(4, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def transpose(A: T.Buffer((rows, columns), "float32"), B: T.Buffer((columns, rows), "float32")):
        for i, j in T.grid(rows, columns):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]

    return transpose


def blur(height: int, width: int) -> PrimFunc:
    """The mean of 3 by 3 neighbours of float32 A (height + 2, width + 2), along x and then along y.

    >>> [b.name for b in blur(8, 10).buffers()]
    ['A', 'B']
    """

    @T.prim_func
    def blur(A: T.Buffer((height + 2, width + 2), "float32"), B: T.Buffer((height, width), "float32")):
        along = T.alloc_buffer((height + 2, width), "float32")
        for y, x in T.grid(height + 2, width):
            with T.block("along"):
                vy, vx = T.axis.remap("SS", [y, x])
                along[vy, vx] = (A[vy, vx] + A[vy, vx + 1] + A[vy, vx + 2]) * T.float32(1 / 3)
        for y, x in T.grid(height, width):
            with T.block("out"):
                vy, vx = T.axis.remap("SS", [y, x])
                B[vy, vx] = (along[vy, vx] + along[vy + 1, vx] + along[vy + 2, vx]) * T.float32(1 / 3)

    return blur
