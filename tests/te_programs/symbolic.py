"""Tensor programs of symbolic sizes, or whose data says what they read."""

from __future__ import annotations

from .programs import program


@program
def symbolic_add(te, tir):
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return [A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")]


@program
def symbolic_chain(te, tir):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    return [A, te.compute((n, m), lambda *i: B(*i) + A(*i), name="C")]


@program
def symbolic_matmul(te, tir):
    n, m, l = te.var("n"), te.var("m"), te.var("l")
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), "k")
    return [A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


@program
def symbolic_shift(te, tir):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    return [A, te.compute((n - 1,), lambda i: A[i] + A[i + 1], name="B")]


@program
def symbolic_long(te, tir):
    n = te.var("n", "int64")
    A = te.placeholder((n,), name="A")
    return [A, te.compute((n,), lambda i: A[i] + 1.0, name="B")]


@program
def symbolic_tiles(te, tir):
    n = te.var("n")
    A = te.placeholder((n, 16), name="A")
    return [A, te.compute((n, 4, 4), lambda i, j, k: A[i, j * 4 + k], name="B")]


@program
def gather_rows(te, tir):
    table, index = te.placeholder((8, 16), name="table"), te.placeholder((5,), "int32", name="index")
    return [table, index, te.compute((5, 16), lambda i, j: table[index[i], j], name="rows")]


@program
def gather_elements(te, tir):
    A, index = te.placeholder((8, 16), name="A"), te.placeholder((8, 4), "int32", name="index")
    return [A, index, te.compute((8, 4), lambda i, j: A[i, index[i, j]], name="B")]


@program
def gather_and_sum(te, tir):
    table, index = te.placeholder((8, 16), name="table"), te.placeholder((5, 3), "int32", name="index")
    k = te.reduce_axis((0, 3), "k")
    return [table, index, te.compute((5, 16), lambda i, j: te.sum(table[index[i, k], j], axis=k), name="bag")]


@program
def upsample(te, tir):
    A = te.placeholder((4, 4), name="A")
    return [A, te.compute((8, 8), lambda i, j: A[i // 2, j // 2], name="B")]


@program
def reversed_rows(te, tir):
    A = te.placeholder((16, 8), name="A")
    return [A, te.compute((16, 8), lambda i, j: A[15 - i, j], name="B")]
