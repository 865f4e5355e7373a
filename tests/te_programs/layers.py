"""Tensor programs of several results, small types, layers of networks, and symbolic rows."""

from __future__ import annotations

from .programs import program


@program
def results_of_a_chain_backwards(te, tir):
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), "k")
    total = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="total")
    scaled = te.compute((8, 16), lambda i, j: A[i, j] * total[i], name="scaled")
    return [A, scaled, total]


@program
def three_results_of_a_reduction(te, tir):
    A, k = te.placeholder((8, 16), name="A"), te.reduce_axis((0, 16), "k")

    def combined(x, y):
        return x[0] + y[0], te.max(x[1], y[1]), te.min(x[2], y[2])

    reducer = te.comm_reducer(
        combined, lambda t0, t1, t2: (tir.const(0, t0), te.min_value(t1), te.max_value(t2)), name="three"
    )
    return [A, *te.compute((8,), lambda i: reducer((A[i, k], A[i, k], A[i, k] * 2.0), axis=k), name="R")]


@program
def moments(te, tir):
    A = te.placeholder((4, 6, 5), name="A")
    j, k = te.reduce_axis((0, 6), "j"), te.reduce_axis((0, 5), "k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda t0, t1: (tir.const(0, t0), tir.const(0, t1)), name="moments"
    )
    first, second = te.compute((4,), lambda i: both((A[i, j, k], A[i, j, k] * A[i, j, k]), axis=[j, k]), name="M")
    mean = te.compute((4,), lambda i: first[i] / 30.0, name="mean")
    return [A, mean, te.compute((4,), lambda i: second[i] / 30.0 - mean[i] * mean[i], name="variance")]


@program
def brain_floats(te, tir):
    A, k = te.placeholder((8, 16), "bfloat16", name="A"), te.reduce_axis((0, 16), "k")
    total = te.compute((8,), lambda i: te.sum(A[i, k].astype("float32"), axis=k), name="total")
    return [A, te.compute((8,), lambda i: total[i].astype("bfloat16"), name="B")]


@program
def quantized(te, tir):
    A, scale = te.placeholder((16,), name="A"), te.placeholder((), name="scale")
    low, high = tir.const(-128.0, "float32"), tir.const(127.0, "float32")
    return [A, scale, te.compute((16,), lambda i: te.max(te.min(A[i] * scale[()], high), low).astype("int8"), name="Q")]


@program
def doubles_and_longs(te, tir):
    A = te.placeholder((16,), "int64", name="A")
    return [A, te.compute((16,), lambda i: A[i].astype("float64") * tir.const(0.5, "float64"), name="B")]


@program
def unsigned_maximum(te, tir):
    A, k = te.placeholder((8, 16), "uint8", name="A"), te.reduce_axis((0, 16), "k")
    return [A, te.compute((8,), lambda i: te.max(A[i, k], axis=k), name="B")]


@program
def a_value_of_values(te, tir):
    A, k = te.placeholder((16,), name="A"), te.reduce_axis((0, 16), "k")
    total = te.compute((), lambda: te.sum(A[k], axis=k), name="total")
    norm = te.compute((), lambda: te.sqrt(te.abs(total[()])), name="norm")
    return [A, te.compute((16,), lambda i: A[i] / (norm[()] + 1.0), name="B")]


@program
def one_hot(te, tir):
    index = te.placeholder((6,), "int32", name="index")
    one, zero = tir.const(1.0, "float32"), tir.const(0.0, "float32")
    return [index, te.compute((6, 8), lambda i, j: tir.Select(index[i] == j, one, zero), name="hot")]


@program
def dilated_conv1d(te, tir):
    A, W, r = te.placeholder((20,), name="A"), te.placeholder((3,), name="W"), te.reduce_axis((0, 3), "r")
    return [A, W, te.compute((14,), lambda i: te.sum(A[i + r * 3] * W[r], axis=r), name="C")]


@program
def grouped_conv1d(te, tir):
    A, W = te.placeholder((4, 10), name="A"), te.placeholder((6, 2, 3), name="W")
    c, r = te.reduce_axis((0, 2), "c"), te.reduce_axis((0, 3), "r")
    return [A, W, te.compute((6, 8), lambda f, i: te.sum(A[f // 3 * 2 + c, i + r] * W[f, c, r], axis=[c, r]), name="C")]


@program
def pixel_shuffle(te, tir):
    A = te.placeholder((8, 3, 3), name="A")
    return [A, te.compute((2, 6, 6), lambda c, y, x: A[c * 4 + y % 2 * 2 + x % 2, y // 2, x // 2], name="B")]


@program
def attention_scores(te, tir):
    Q, K = te.placeholder((2, 5, 4), name="Q"), te.placeholder((2, 7, 4), name="K")
    d = te.reduce_axis((0, 4), "d")
    S = te.compute((2, 5, 7), lambda h, i, j: te.sum(Q[h, i, d] * K[h, j, d], axis=d), name="S")
    masked = te.compute(
        (2, 5, 7), lambda h, i, j: tir.Select(j <= i, S[h, i, j] * 0.5, tir.const(-1e9, "float32")), name="masked"
    )
    return [Q, K, masked]


@program
def squared_distances(te, tir):
    A, B = te.placeholder((5, 3), name="A"), te.placeholder((6, 3), name="B")
    k = te.reduce_axis((0, 3), "k")

    def distance(i, j):
        difference = A[i, k] - B[j, k]
        return te.sum(difference * difference, axis=k)

    return [A, B, te.compute((5, 6), distance, name="D")]


@program
def symbolic_softmax(te, tir):
    n = te.var("n")
    A = te.placeholder((n, 16), name="A")
    k, l = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "l")
    most = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="most")
    exps = te.compute((n, 16), lambda i, j: te.exp(A[i, j] - most[i]), name="exps")
    total = te.compute((n,), lambda i: te.sum(exps[i, l], axis=l), name="total")
    return [A, te.compute((n, 16), lambda i, j: exps[i, j] / total[i], name="softmax")]


@program
def symbolic_flattened(te, tir):
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    return [A, te.compute((n * 4,), lambda i: A[i // 4, i % 4], name="B")]


@program
def symbolic_concatenated(te, tir):
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n,), name="A"), te.placeholder((m,), name="B")
    return [A, B, te.compute((n + m,), lambda i: te.if_then_else(i < n, A[i], B[i - n]), name="C")]


@program
def symbolic_table(te, tir):
    n = te.var("n")
    table, index = te.placeholder((n, 8), name="table"), te.placeholder((5,), "int32", name="index")
    return [table, index, te.compute((5, 8), lambda i, j: table[i, j] * index[i].astype("float32"), name="rows")]
