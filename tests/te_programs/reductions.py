"""Tensor programs that reduce: products, rows, convolutions."""

from __future__ import annotations

from .programs import pair, program


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
