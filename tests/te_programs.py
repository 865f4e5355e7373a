"""Tensor programs for the tests, as functions of the namespaces ``te`` and ``tir``: what each returns are the arguments.

They are written in the spelling that TVM 0.27 has too; the golden text of each was compared with what it makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any, Any], list[Any]]] = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def pair(te, shape=(16, 8), **types):
    return te.placeholder(shape, name="A", **types), te.placeholder(shape, name="B", **types)


# ---------------------------------------------------------------- elementwise


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


# ---------------------------------------------------------------- reductions


@program
def matmul(te, tir):
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 7), name="B")
    k = te.reduce_axis((0, 8), "k")
    return [A, B, te.compute((6, 7), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


@program
def matmul_relu(te, tir):
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 7), name="B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((6, 7), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, te.compute((6, 7), lambda i, j: te.max(C[i, j], tir.const(0.0, "float32")), name="D")]


@program
def two_matmuls(te, tir):
    A, B, D = (te.placeholder((5, 5), name=n) for n in "ABD")
    k, l = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "l")
    C = te.compute((5, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, D, te.compute((5, 5), lambda i, j: te.sum(C[i, l] * D[l, j], axis=l), name="E")]


@program
def batch_matmul(te, tir):
    A, B = te.placeholder((2, 8, 4), name="A"), te.placeholder((2, 6, 4), name="B")
    k = te.reduce_axis((0, 4), "k")
    return [A, B, te.compute((2, 8, 6), lambda b, i, j: te.sum(A[b, i, k] * B[b, j, k], axis=k), name="C")]


def reduced_rows(te, reducer, dtype="float32"):
    A, k = te.placeholder((16, 8), dtype, name="A"), te.reduce_axis((0, 8), "k")
    return [A, te.compute((16,), lambda i: getattr(te, reducer)(A[i, k], axis=k), name="B")]


@program
def row_sum(te, tir):
    return reduced_rows(te, "sum")


@program
def row_max(te, tir):
    return reduced_rows(te, "max")


@program
def row_min(te, tir):
    return reduced_rows(te, "min")


@program
def integer_sum(te, tir):
    return reduced_rows(te, "sum", "int8")


@program
def integer_max(te, tir):
    return reduced_rows(te, "max", "int32")


@program
def product(te, tir):
    A, k = te.placeholder((16, 8), name="A"), te.reduce_axis((0, 8), "k")
    prod = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t), name="prod")
    return [A, te.compute((16,), lambda i: prod(A[i, k], axis=k), name="B")]


@program
def widened_sum(te, tir):
    A, B = pair(te, (16, 8), dtype="int8")
    k = te.reduce_axis((0, 8), "k")

    def product(i):
        return te.sum(A[i, k].astype("int32") * B[i, k].astype("int32"), axis=k)

    return [A, B, te.compute((16,), product, name="C")]


@program
def sum_of_all(te, tir):
    A = te.placeholder((16, 8), name="A")
    i, j = te.reduce_axis((0, 16), "i"), te.reduce_axis((0, 8), "j")
    return [A, te.compute((), lambda: te.sum(A[i, j], axis=[i, j]), name="total")]


@program
def sum_over_two_axes(te, tir):
    A = te.placeholder((4, 6, 8), name="A")
    j, k = te.reduce_axis((0, 6), "j"), te.reduce_axis((0, 8), "k")
    return [A, te.compute((4,), lambda i: te.sum(A[i, j, k], axis=[j, k]), name="B")]


@program
def shared_axis(te, tir):
    A, k = te.placeholder((16, 8), name="A"), te.reduce_axis((0, 8), "k")
    S = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="S")
    return [A, S, te.compute((16,), lambda i: te.max(A[i, k], axis=k), name="M")]


@program
def axis_with_begin(te, tir):
    A, k = te.placeholder((16, 8), name="A"), te.reduce_axis((2, 7), "k")
    return [A, te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")]


@program
def axis_named_alike(te, tir):
    A, k = te.placeholder((16, 8), name="A"), te.reduce_axis((0, 8), "i")
    return [A, te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")]


@program
def axis_unnamed(te, tir):
    A, k = te.placeholder((16, 8), name="A"), te.reduce_axis((0, 8))
    return [A, te.compute((16,), lambda i: te.sum(A[i, k], axis=k))]


@program
def axis_of_one(te, tir):
    A, k = te.placeholder((16, 1), name="A"), te.reduce_axis((0, 1), "k")
    return [A, te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")]


@program
def axis_in_expressions(te, tir):
    A, k = te.placeholder((16,), name="A"), te.reduce_axis((0, 8), "k")
    return [A, te.compute((8,), lambda i: te.sum(A[i + k] * (k + 1).astype("float32"), axis=k), name="B")]


@program
def argmax(te, tir):
    index, value = te.placeholder((8, 16), "int32", name="index"), te.placeholder((8, 16), name="value")

    def larger(x, y):
        return tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])

    reducer = te.comm_reducer(larger, lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    k = te.reduce_axis((0, 16), "k")
    at, most = te.compute((8,), lambda i: reducer((index[i, k], value[i, k]), axis=k), name="M")
    return [index, value, at, most]


@program
def argmin_by_position(te, tir):
    value, k = te.placeholder((8, 16), name="value"), te.reduce_axis((0, 16), "k")

    def smaller(x, y):
        first = te.any(x[1] < y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    reducer = te.comm_reducer(smaller, lambda t0, t1: (te.max_value(t0), te.max_value(t1)), name="argmin")
    at, least = te.compute((8,), lambda i: reducer((k.var, value[i, k]), axis=k), name="M")
    return [value, at, least]


@program
def sum_and_product(te, tir):
    A, k = te.placeholder((8, 16), name="A"), te.reduce_axis((0, 16), "k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda t0, t1: (tir.const(0, t0), tir.const(1, t1)), name="both"
    )
    total, product = te.compute((8,), lambda i: both((A[i, k], A[i, k] + 1.0), axis=k), name="R")
    return [A, total, product]


@program
def softmax(te, tir):
    A = te.placeholder((8, 16), name="A")
    k, l = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "l")
    most = te.compute((8,), lambda i: te.max(A[i, k], axis=k), name="maxelem")
    exps = te.compute((8, 16), lambda i, j: te.exp(A[i, j] - most[i]), name="exp")
    total = te.compute((8,), lambda i: te.sum(exps[i, l], axis=l), name="expsum")
    return [A, te.compute((8, 16), lambda i, j: exps[i, j] / total[i], name="softmax")]


@program
def layer_norm(te, tir):
    A = te.placeholder((8, 16), name="A")
    k, l = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "l")
    mean = te.compute((8,), lambda i: te.sum(A[i, k] / 16.0, axis=k), name="mean")
    var = te.compute((8,), lambda i: te.sum((A[i, l] - mean[i]) * (A[i, l] - mean[i]) / 16.0, axis=l), name="var")
    return [A, te.compute((8, 16), lambda i, j: (A[i, j] - mean[i]) * te.rsqrt(var[i] + 1e-5), name="normed")]


@program
def conv1d(te, tir):
    A, W = te.placeholder((18,), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), "r")
    return [A, W, te.compute((16,), lambda i: te.sum(A[i + r] * W[r], axis=r), name="C")]


@program
def conv2d(te, tir):
    A, W = te.placeholder((1, 2, 5, 5), name="A"), te.placeholder((3, 2, 3, 3), name="W")
    c, y, x = te.reduce_axis((0, 2), "rc"), te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    zero = tir.const(0.0, "float32")

    def padded(n, c, i, j):
        return te.if_then_else(te.all(i >= 1, i - 1 < 5, j >= 1, j - 1 < 5), A[n, c, i - 1, j - 1], zero)

    Apad = te.compute((1, 2, 7, 7), padded, name="Apad")

    def summed(n, f, i, j):
        return te.sum(Apad[n, c, i + y, j + x] * W[f, c, y, x], axis=[c, y, x])

    return [A, W, te.compute((1, 3, 5, 5), summed, name="B")]


@program
def strided_conv2d(te, tir):
    A, W = te.placeholder((7, 7, 2), name="A"), te.placeholder((3, 3, 2, 2), name="W")
    y, x, c = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx"), te.reduce_axis((0, 2), "rc")

    def summed(i, j, f):
        return te.sum(A[i * 2 + y, j * 2 + x, c] * W[y, x, c, f], axis=[y, x, c])

    return [A, W, te.compute((3, 3, 2), summed, name="B")]


@program
def depthwise(te, tir):
    A, W = te.placeholder((4, 7, 7), name="A"), te.placeholder((4, 3, 3), name="W")
    y, x = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")

    def summed(c, i, j):
        return te.sum(A[c, i + y, j + x] * W[c, y, x], axis=[y, x])

    return [A, W, te.compute((4, 5, 5), summed, name="B")]


@program
def max_pool(te, tir):
    A = te.placeholder((4, 8, 8), name="A")
    y, x = te.reduce_axis((0, 2), "y"), te.reduce_axis((0, 2), "x")
    return [A, te.compute((4, 4, 4), lambda c, i, j: te.max(A[c, i * 2 + y, j * 2 + x], axis=[y, x]), name="pool")]


@program
def blocked_matmul(te, tir):
    A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 8), name="B")
    k = te.reduce_axis((0, 6), "k")
    packedB = te.compute((2, 6, 4), lambda x, y, z: B[y, x * 4 + z], name="packedB")
    return [A, B, te.compute((8, 8), lambda m, n: te.sum(A[m, k] * packedB[n // 4, k, n % 4], axis=k), name="C")]


@program
def tiled_output(te, tir):
    A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 8), name="B")
    k, bn = te.reduce_axis((0, 6), "k"), 4

    def tile(x, y, z, w):
        row, column = x * bn + z, y * bn + w
        return te.sum(A[row, k] * B[k, column], axis=k)

    c1 = te.compute((2, 2, bn, bn), tile, name="c1")
    return [A, B, te.compute((8, 8), lambda i, j: c1[i // bn, j // bn, i % bn, j % bn], name="C")]


@program
def int8_gemm(te, tir):
    A, B = te.placeholder((8, 8), "uint8", name="A"), te.placeholder((8, 8), "int8", name="B")
    k = te.reduce_axis((0, 8), "k")

    def product(i, j):
        return te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k)

    return [A, B, te.compute((8, 8), product, name="C")]


# ---------------------------------------------------------------- symbolic sizes, data-dependent indices


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
