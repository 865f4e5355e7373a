"""Stage schedules of symbolic shapes, against NumPy at sizes with and without tails, and of one and no elements."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te

SIZES = (0, 1, 7, 16, 33)


def check(make, reference, sizes=SIZES, target="llvm"):
    """``make(n)`` gives a schedule, its arguments and the shapes of the arrays; every size is of one build."""
    n = te.var("n")
    s, args, shapes = make(n)
    built = tir.build(s, args, target)
    for size in sizes:
        rng = np.random.default_rng(size)
        given = [rng.integers(-4, 5, shape(size)).astype("float32") for shape in shapes]
        expected = reference(*given[:-1])
        given[-1] = np.full_like(given[-1], 99)
        built(*given)
        np.testing.assert_array_equal(given[-1], expected, err_msg=f"n = {size}")


def product(n, m=5):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, m), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, [lambda n: (n, n), lambda n: (n, m), lambda n: (n, m)]


def rows(n, m=6):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1.0, name="C")
    return A, B, C, [lambda n: (n, m), lambda n: (n, m)]


def test_tiles_and_vectors_of_a_product():
    def make(n):
        A, B, C, shapes = product(n)
        s = te.create_schedule(C.op)
        xo, yo, xi, yi = s[C].tile(*C.op.axis, 8, 4)
        ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=4)
        s[C].reorder(xo, yo, ko, xi, ki, yi)
        s[C].vectorize(yi)
        s[C].parallel(xo)
        s[C].unroll(ki)
        return s, [A, B, C], shapes

    check(make, lambda a, b: a @ b)


@pytest.mark.parametrize("where", ["outer", "inner"])
def test_a_product_written_and_read_through_copies(where):
    def make(n):
        A, B, C, shapes = product(n)
        s = te.create_schedule(C.op)
        CC = s.cache_write(C, "global")
        xo, xi = s[C].split(C.op.axis[0], factor=8)
        s[CC].compute_at(s[C], xo if where == "outer" else xi)
        ko, _ = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
        s[CC].reorder(ko, *s[CC].op.axis)
        BB = s.cache_read(B, "global", [CC])
        s[BB].compute_at(s[CC], ko)
        return s, [A, B, C], shapes

    check(make, lambda a, b: a @ b)


@pytest.mark.parametrize("how", ["factor", "nparts"])
def test_partial_results_of_a_symbolic_reduction(how):
    def make(n):
        A, k = te.placeholder((3, n), name="A"), te.reduce_axis((0, n), "k")
        B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        BF = s.rfactor(B, s[B].split(k, **{how: 4})[how == "factor"])
        s[BF].parallel(s[BF].op.axis[0])
        return s, [A, B], [lambda n: (3, n), lambda n: (3,)]

    check(make, lambda a: a.sum(1))


@pytest.mark.parametrize("split", [{"factor": 4}, {"nparts": 3}, {"factor": 64}])
@pytest.mark.parametrize("place", [0, 1])
def test_a_stage_at_a_loop_with_a_symbolic_tail(split, place):
    def make(n):
        A, B, C, shapes = rows(n)
        s = te.create_schedule(C.op)
        axes = s[C].split(C.op.axis[0], **split)
        s[B].compute_at(s[C], axes[place])
        inner, _ = s[B].split(B.op.axis[0], factor=3)
        s[B].vectorize(B.op.axis[1])
        return s, [A, C], shapes

    check(make, lambda a: a * 2 + 1)


def test_a_fused_loop_that_is_split_again():
    def make(n):
        A, B, C, shapes = rows(n)
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(s[C].fuse(*C.op.axis), factor=16)
        s[B].compute_at(s[C], outer)
        s[C].vectorize(inner)
        return s, [A, C], shapes

    check(make, lambda a: a * 2 + 1)


def test_padding_and_a_window_of_it():
    def make(n):
        A, r = te.placeholder((n,), name="A"), te.reduce_axis((0, 3), "r")

        def padded(i):
            return te.if_then_else(te.all(i >= 1, i < n + 1), A[i - 1], te.const(0.0, "float32"))

        P = te.compute((n + 2,), padded, name="P")
        C = te.compute((n,), lambda i: te.sum(P[i + r], axis=r), name="C")
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(C.op.axis[0], factor=8)
        s[P].compute_at(s[C], outer)
        s[C].vectorize(inner)
        return s, [A, C], [lambda n: (n,), lambda n: (n,)]

    def reference(a):
        p = np.pad(a, 1)
        return p[:-2] + p[1:-1] + p[2:]

    check(make, reference)


def test_numbers_and_two_parts_in_one():
    def make(n):
        A = te.placeholder((n,), name="A")
        N = te.compute((n + 3,), lambda i: i.astype("float32"), name="N")
        C = te.compute((n * 2 + 3,), lambda i: te.if_then_else(i < n, A[te.min(i, n - 1)], N[i - n]), name="C")
        s = te.create_schedule(C.op)
        outer, _ = s[C].split(C.op.axis[0], factor=5)
        s[N].compute_at(s[C], outer)
        return s, [A, C], [lambda n: (n,), lambda n: (2 * n + 3,)]

    check(make, lambda a: np.concatenate([a, np.arange(len(a) + 3, dtype="float32")]))


def test_factors_that_are_variables():
    def make(n):
        A, B, C, shapes = rows(n)
        s = te.create_schedule(C.op)
        outer, _ = s[C].split(C.op.axis[1], nparts=te.max(n // 4, 1))
        s[B].compute_at(s[C], outer)
        return s, [A, C], shapes

    check(make, lambda a: a * 2 + 1)


def test_a_grid_of_threads_with_copies():
    def make(n):
        A, B, C, shapes = rows(n)
        s = te.create_schedule(C.op)
        bx, tx = s[C].split(s[C].fuse(*C.op.axis), factor=8)
        s[C].bind(bx, te.thread_axis("blockIdx.x"))
        s[C].bind(tx, te.thread_axis("threadIdx.x"))
        s[B].compute_at(s[C], tx)
        return s, [A, C], shapes

    check(make, lambda a: a * 2 + 1, sizes=(1, 5), target="cuda-sim")


def test_a_selection_among_symbolic_columns():
    def make(n):
        A, k = te.placeholder((3, n), name="A"), te.reduce_axis((0, n), "k")

        def greater(x, y):
            first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
            return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

        best = te.comm_reducer(greater, lambda p, v: (te.max_value(p), te.min_value(v)))
        at, _ = te.compute((3,), lambda i: best((k + 0, A[i, k]), axis=k), name="M")
        C = te.compute((3,), lambda i: at[i].astype("float32"), name="C")
        s = te.create_schedule(C.op)
        parts = s.rfactor(at, s[at].split(k, factor=4)[1])
        s[parts[0]].vectorize(s[parts[0]].op.axis[1])
        return s, [A, C], [lambda n: (3, n), lambda n: (3,)]

    check(make, lambda a: a.argmax(1).astype("float32"), sizes=SIZES[1:])


def test_a_written_selection_among_columns_that_depend_on_the_row():
    """Both results of a reduction whose extent depends on a row, computed in a write cache of rows of their own."""

    def make(n):
        A = te.placeholder((n, n), name="A")

        def greater(x, y):
            first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
            return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

        best = te.comm_reducer(greater, lambda p, v: (te.max_value(p), te.min_value(v)))

        def among(i):
            k = te.reduce_axis((0, i + 1), "k")
            return best((k.var, A[i, k]), axis=k)

        at, _ = te.compute((n,), among, name="M")
        C = te.compute((n,), lambda i: at[i].astype("float32"), name="C")
        s = te.create_schedule(C.op)
        s.cache_write([at, _], "global")
        return s, [A, C], [lambda n: (n, n), lambda n: (n,)]

    check(make, lambda a: np.array([row[: i + 1].argmax() for i, row in enumerate(a)], "float32"), sizes=SIZES[1:])
