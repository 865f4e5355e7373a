"""Derivatives of tensor expressions: against finite differences, and against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te


def built(inputs, output):
    """A function of the arrays of ``inputs`` that gives ``output``."""
    module = tir.build(te.create_prim_func([*inputs, output]), "llvm")

    def run(*arrays):
        out = np.zeros([int(s) for s in output.shape], str(output.dtype))
        module(*arrays, out)
        return out

    return run


def evaluated(inputs, output, arrays):
    return built(inputs, output)(*arrays)


def compare(inputs, output, by, arrays, step=1e-6):
    """The derivatives of the sum of ``output``, weighted at random, are those that differences of float64 give."""
    rng = np.random.default_rng(1)
    head = te.placeholder(output.shape, output.dtype, name="head")
    weights = rng.uniform(-1, 1, [int(s) for s in output.shape])
    forward = built(inputs, output)
    for t, made in zip(by, te.gradient(output, by, head)):
        place = inputs.index(t)
        got = evaluated([*inputs, head], made, [*arrays, weights])
        assert got.shape == arrays[place].shape
        for at in np.ndindex(got.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[place][at] += sign * step
                ends.append((forward(*moved) * weights).sum())
            np.testing.assert_allclose(got[at], (ends[0] - ends[1]) / (2 * step), rtol=2e-4, atol=2e-5)


def vector(n=4, name="A"):
    return te.placeholder((n,), "float64", name=name)


SCALARS = {
    "polynomial": lambda x: x * x * 3.0 - x / 2.0 + 1.0,
    "quotient": lambda x: (x + 1.0) / (x * x + 2.0),
    "functions": lambda x: te.exp(x) * te.tanh(x) + te.log(x) - te.sqrt(x) * te.sin(x) + te.cos(x),
    "more functions": lambda x: te.sigmoid(x) + te.erf(x) + te.atan(x) + te.log1p(x) * te.rsqrt(x),
    "powers": lambda x: te.power(x, te.const(3.0, "float64")) + te.power(te.const(2.0, "float64"), x),
    "choices": lambda x: te.max(x, 1.0) * te.min(x, 2.0) + tir.Select(x > 1.5, x * x, x),
    "guards": lambda x: te.if_then_else(x > 1.0, te.log(x), x * 5.0) + te.abs(x - 1.4),
    "rounding": lambda x: te.floor(x) * x,
}


@pytest.mark.parametrize("name", SCALARS)
def test_derivatives_of_scalars(name):
    A = vector()
    B = te.compute((4,), lambda i: SCALARS[name](A[i]), name="B")
    compare([A], B, [A], [np.array([0.3, 1.2, 1.9, 2.7])])


def programs():
    A, V, r = te.placeholder((3, 4), "float64", name="A"), vector(3, "V"), te.reduce_axis((0, 4), "r")
    W = te.placeholder((4, 2), "float64", name="W")
    k = te.reduce_axis((0, 4), "k")
    yield "product", [A, W], te.compute((3, 2), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="C")
    yield "factors", [A], te.compute((3,), lambda i: te.prod(A[i, k] * A[i, 0], axis=k, where=k != 2), name="C")
    r2 = te.reduce_axis((0, 3), "r2")
    yield "factors of two axes", [A], te.compute((2,), lambda i: te.prod(A[r2, k] + i, axis=[r2, k]), name="C")
    yield "rows and columns", [A, V], te.compute((4, 3), lambda i, j: A[j, i] * V[j] + V[2 - j], name="C")
    L, w = vector(9, "L"), te.reduce_axis((0, 3), "w")
    yield "window", [L, V], te.compute((7,), lambda i: te.sum(L[i + w] * V[w], axis=w), name="C")
    yield (
        "strides",
        [L, V],
        te.compute((4,), lambda i: te.sum(L[i * 2 + w] * V[w], axis=w, where=i * 2 + w < 9), name="C"),
    )
    yield "reshape", [A], te.compute((12,), lambda i: A[i // 4, i % 4] * A[i // 4, 0], name="C")
    yield "greatest", [A], te.compute((3,), lambda i: te.max(A[i, r], axis=r), name="C")
    yield "least", [A], te.compute((3,), lambda i: te.min(A[i, r] * 2.0, axis=r), name="C")

    def triangle(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(L[k] * L[i], axis=k)

    yield "triangle", [L], te.compute((5,), triangle, name="C")
    most = te.compute((3,), lambda i: te.max(A[i, r], axis=r), name="most")
    exps = te.compute((3, 4), lambda i, j: te.exp(A[i, j] - most[i]), name="exps")
    total = te.compute((3,), lambda i: te.sum(exps[i, k], axis=k), name="total")
    yield "softmax", [A], te.compute((3, 4), lambda i, j: exps[i, j] / total[i], name="C")
    yield (
        "reductions inside",
        [A],
        te.compute(
            (3, 4), lambda i, j: A[i, j] * te.sum(A[i, k], axis=k) / (te.sum(A[i, r] * A[i, r], axis=r) + 1.0), name="C"
        ),
    )
    pairs = te.compute((3,), lambda i: (V[i] * 2.0, V[i] * V[i]), name="pairs")
    yield "two results", [V], te.compute((3,), lambda i: pairs[0][i] * pairs[1][2 - i], name="C")


@pytest.mark.parametrize(("inputs", "output"), [pytest.param(i, o, id=name) for name, i, o in programs()])
def test_derivatives_of_programs(inputs, output):
    rng = np.random.default_rng(0)
    compare(inputs, output, inputs, [rng.uniform(-2, 2, [int(s) for s in t.shape]) for t in inputs])


def test_gathered_rows_and_an_input_that_is_not_read():
    table, index = te.placeholder((5, 2), name="table"), te.placeholder((4,), "int32", name="index")
    other = te.placeholder((2,), name="other")
    rows = te.compute((4, 2), lambda i, j: table[index[i], j] * 3.0, name="rows")
    head = te.placeholder((4, 2), name="head")
    by_table, by_other = te.gradient(rows, [table, other], head)
    chosen, h = np.array([1, 3, 1, 0], "int32"), np.arange(8, dtype="float32").reshape(4, 2)
    got = evaluated([table, index, head], by_table, [np.zeros((5, 2), "float32"), chosen, h])
    expected = np.zeros((5, 2), "float32")
    np.add.at(expected, chosen, h * 3)
    np.testing.assert_array_equal(got, expected)
    assert not evaluated([], by_other, []).any()


def test_the_derivative_of_a_product_is_a_product():
    A, B = te.placeholder((5, 4), name="A"), te.placeholder((4, 3), name="B")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((5, 3), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    head = te.placeholder((5, 3), name="head")
    by_a, by_b = te.gradient(C, [A, B], head)
    assert [len(t.op.reduce_axis) for t in (by_a, by_b)] == [1, 1]
    rng = np.random.default_rng(0)
    a, b, h = (rng.integers(-3, 4, s).astype("float32") for s in ((5, 4), (4, 3), (5, 3)))
    np.testing.assert_array_equal(evaluated([A, B, head], by_a, [a, b, h]), h @ b.T)
    np.testing.assert_array_equal(evaluated([A, B, head], by_b, [a, b, h]), a.T @ h)


def test_jacobians_and_heads_of_several_rows():
    A = vector(3)
    B = te.compute((3,), lambda i: A[i] * A[2 - i], name="B")
    a = np.array([2.0, 3.0, 5.0])
    expected = np.zeros((3, 3))
    for i in range(3):
        expected[i, i] += a[2 - i]
        expected[i, 2 - i] += a[i]
    np.testing.assert_allclose(evaluated([A], te.gradient(B, A)[0], [a]), expected)
    head = te.placeholder((2, 3), "float64", name="head")
    h = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    np.testing.assert_allclose(evaluated([A, head], te.gradient(B, [A], head)[0], [a, h]), h @ expected)


def test_what_has_no_derivative_is_refused_at_its_line():
    A, k = vector(), te.reduce_axis((0, 4), "k")
    N = te.placeholder((4,), "int32", name="N")
    state = te.placeholder((4, 4), "float64", name="state")
    first = te.compute((1, 4), lambda t, i: A[i], name="first")
    scanned = te.scan(first, te.compute((4, 4), lambda t, i: state[t - 1, i] * 2.0, name="step"), state)
    root = te.comm_reducer(lambda x, y: te.sqrt(x * x + y * y), lambda t: te.const(0, t))
    cases = {
        "the reduction of `P` has no derivative": te.compute((1,), lambda i: root(A[k], axis=k), name="P"),
        "`T.atan2(A[i], A[i])` has no derivative": te.compute((4,), lambda i: te.atan2(A[i], A[i]), name="Q"),
        "`scan` has no derivative": te.compute((4,), lambda i: scanned[3, i], name="R"),
        "tensors of floats": N,
    }
    for text, output in cases.items():
        with pytest.raises(tir.TirError) as caught:
            te.gradient(output, [A])
        assert text in str(caught.value) and __file__ in str(caught.value), str(caught.value)
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    with pytest.raises(tir.TirError, match="its shape ends with that"):
        te.gradient(B, [A], te.placeholder((3,), "float64", name="head"))
