"""Tensor programs without reductions."""

from __future__ import annotations

from .programs import pair, program


@program
def add(te, tir):
    A, B = pair(te)
    return [A, B, te.compute((16, 8), lambda i, j: A[i, j] + B[i, j], name="C")]


@program
def all_indices(te, tir):
    A, B = pair(te)
    return [A, B, te.compute(A.shape, lambda *i: A(*i) * B(*i) - A(*i), name="C")]


@program
def some_indices(te, tir):
    A = te.placeholder((4, 5, 6), name="A")
    return [A, te.compute((4, 5, 6), lambda n, *rest: A(n, *rest) / 2.0, name="C")]


@program
def chain(te, tir):
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((16,), lambda i: B[i] + 1.0, name="C")
    return [A, te.compute((16,), lambda i: C[i] * B[i], name="D")]


@program
def both_results(te, tir):
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    return [A, B, te.compute((16,), lambda i: B[i] + 1.0, name="C")]


@program
def diamond(te, tir):
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((16,), lambda i: A[i] + 3.0, name="C")
    return [A, te.compute((16,), lambda i: B[i] - C[i], name="D")]


@program
def unnamed(te, tir):
    X, Y = te.placeholder((4,), name="X"), te.placeholder((4,), name="X")
    B = te.compute((4,), lambda i: X[i] + Y[i])
    return [X, Y, te.compute((4,), lambda i: B[i] + 1.0)]


@program
def output_first(te, tir):
    A = te.placeholder((16,), name="A")
    return [te.compute((16,), lambda i: A[i] * 2.0, name="B"), A]


@program
def dotted_name(te, tir):
    A = te.placeholder((16,), name="data.in")
    return [A, te.compute((16,), lambda i: A[i] * 2.0, name="relu.out")]


@program
def transpose(te, tir):
    A = te.placeholder((16, 8), name="A")
    return [A, te.compute((8, 16), lambda i, j: A[j, i], name="B")]


@program
def strided(te, tir):
    A = te.placeholder((32,), name="A")
    return [A, te.compute((16,), lambda i: A[i * 2] + A[i * 2 + 1], name="B")]


@program
def broadcast(te, tir):
    A, b = te.placeholder((16, 8), name="A"), te.placeholder((8,), name="bias")
    return [A, b, te.compute((16, 8), lambda i, j: A[i, j] + b[j], name="C")]


@program
def unit_extent(te, tir):
    A = te.placeholder((16, 1), name="A")
    return [A, te.compute((16, 1), lambda i, j: A[i, j] + 1.0, name="B")]


@program
def reshape(te, tir):
    A = te.placeholder((16, 8), name="A")
    return [A, te.compute((128,), lambda i: A[i // 8, i % 8], name="B")]


@program
def functions_of_floats(te, tir):
    A = te.placeholder((16,), name="A")
    return [A, te.compute((16,), lambda i: te.exp(A[i]) + te.tanh(A[i]) * te.sigmoid(A[i]) - te.cos(A[i]), name="B")]


@program
def powers(te, tir):
    A = te.placeholder((16,), name="A")
    return [A, te.compute((16,), lambda i: te.sqrt(te.abs(A[i])) + te.power(A[i], tir.const(2.0, "float32")), name="B")]


@program
def relu(te, tir):
    A = te.placeholder((16,), name="A")
    return [A, te.compute((16,), lambda i: te.max(A[i], tir.const(0.0, "float32")), name="B")]


@program
def clamp(te, tir):
    A = te.placeholder((16,), name="A")
    low, high = tir.const(-1.0, "float32"), tir.const(1.0, "float32")
    return [A, te.compute((16,), lambda i: te.min(te.max(A[i], low), high), name="B")]


@program
def select(te, tir):
    A, B = pair(te, (16,))
    return [A, B, te.compute((16,), lambda i: tir.Select(A[i] < B[i], A[i], B[i]), name="C")]


@program
def padding(te, tir):
    A = te.placeholder((16,), name="A")

    def padded(i):
        inside = te.all(i >= 1, i < 17)
        return te.if_then_else(inside, A[i - 1], tir.const(0.0, "float32"))

    return [A, te.compute((18,), padded, name="padded")]


@program
def concatenate(te, tir):
    A, B = te.placeholder((4,), name="A"), te.placeholder((6,), name="B")
    return [A, B, te.compute((10,), lambda i: te.if_then_else(i < 4, A[i], B[i - 4]), name="C")]


@program
def iota(te, tir):
    return [te.compute((16,), lambda i: i, name="iota")]


@program
def iota_of_two(te, tir):
    return [te.compute((4, 8), lambda i, j: i * 8 + j, name="iota")]


@program
def constant(te, tir):
    return [te.compute((4, 8), lambda i, j: tir.const(1.5, "float32"), name="full")]


@program
def casts(te, tir):
    A = te.placeholder((16,), "int8", name="A")
    return [A, te.compute((16,), lambda i: A[i].astype("int32") * 3, name="B")]


@program
def half(te, tir):
    A, B = pair(te, (16,), dtype="float16")
    return [A, B, te.compute((16,), lambda i: A[i] * B[i], name="C")]


@program
def to_float(te, tir):
    A = te.placeholder((16,), "int32", name="A")
    return [A, te.compute((16,), lambda i: A[i].astype("float32") * 0.5, name="B")]


@program
def integers(te, tir):
    A, B = pair(te, (16,), dtype="int32")
    return [A, B, te.compute((16,), lambda i: te.floordiv(A[i], 3) + te.floormod(B[i], 5) * 2, name="C")]


@program
def bits(te, tir):
    A, B = pair(te, (16,), dtype="uint8")
    return [A, B, te.compute((16,), lambda i: (A[i] & B[i]) | (A[i] ^ B[i]), name="C")]


@program
def comparison(te, tir):
    A, B = pair(te, (16,))
    return [A, B, te.compute((16,), lambda i: A[i] < B[i], name="C")]


@program
def scalar_tensor(te, tir):
    x = te.placeholder((), name="x")
    return [x, te.compute((), lambda: x[()] * 2.0, name="y")]


@program
def scaled_by_scalar_tensor(te, tir):
    A, x = te.placeholder((16,), name="A"), te.placeholder((), name="x")
    return [A, x, te.compute((16,), lambda i: A[i] * x[()], name="B")]


@program
def scalar_argument(te, tir):
    n, A = te.var("n"), te.placeholder((16,), name="A")
    return [n, A, te.compute((16,), lambda i: A[i] * n.astype("float32"), name="B")]


@program
def locals_of_a_function(te, tir):
    A, B = pair(te, (16,))

    def formula(i):
        square = A[i] * A[i]
        other = B[i] + 1.0
        return square / other

    return [A, B, te.compute((16,), formula, name="C")]


@program
def four_dimensions(te, tir):
    A = te.placeholder((2, 3, 4, 5), name="A")
    return [A, te.compute((2, 4, 5, 3), lambda n, h, w, c: A[n, c, h, w], name="nhwc")]


@program
def packed(te, tir):
    B = te.placeholder((16, 32), name="B")
    return [B, te.compute((4, 16, 8), lambda bn, k, n: B[k, bn * 8 + n], name="packedB")]


@program
def two_results(te, tir):
    A, B = pair(te, (16,))
    sums, products = te.compute((16,), lambda i: (A[i] + B[i], A[i] * B[i]), name="T")
    return [A, B, sums, products]


@program
def two_results_between(te, tir):
    A, B = pair(te, (16,))
    sums, products = te.compute((16,), lambda i: (A[i] + B[i], A[i] * B[i]), name="T")
    return [A, B, te.compute((16,), lambda i: sums[i] - products[i], name="C")]


@program
def results_of_two_types(te, tir):
    A = te.placeholder((16,), name="A")
    halves, whole = te.compute((16,), lambda i: (A[i] * 0.5, A[i].astype("int32")), name="T")
    return [A, halves, whole]
