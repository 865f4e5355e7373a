"""Values that an expression uses many times are there once."""

from __future__ import annotations

import numpy as np

import tir
from tir import te
from tir.visit import nodes_of


def chained(x):
    for _ in range(40):
        x = x * x - x
    return x


def run(output, data, *arrays):
    func = te.create_prim_func([data, output])
    assert len(nodes_of(func.body)) < 2000
    made = np.zeros([int(n) for n in output.shape], str(output.dtype))
    tir.build(func)(*arrays, made)
    return made


def test_a_chain_of_values_that_are_used_twice():
    A = te.placeholder((16,), "float64", name="A")
    x = np.linspace(0.1, 0.9, 16)
    np.testing.assert_allclose(run(te.compute((16,), lambda i: chained(A[i])), A, x), chained(x), rtol=1e-12)


def test_what_is_under_a_condition_stays_there():
    A = te.placeholder((16,), "float64", name="A")
    B = te.compute(
        (16,), lambda i: te.if_then_else(i > 0, chained(A[i - 1]), 0.0) + te.if_then_else(i > 0, chained(A[i - 1]), 0.0)
    )
    x = np.linspace(0.1, 0.9, 16)
    expected = np.concatenate([[0.0], 2 * chained(x)[:-1]])
    np.testing.assert_allclose(run(B, A, x), expected, rtol=1e-12)


def test_values_and_places_by_selects():
    A = te.placeholder((5, 64), "float32", name="A")

    def largest(i):
        value, place = A[i, 0], tir.const(0, "int64")
        for k in range(1, 64):
            larger = A[i, k] > value
            value, place = tir.Select(larger, A[i, k], value), tir.Select(larger, tir.const(k, "int64"), place)
        return place

    x = np.random.default_rng(0).standard_normal((5, 64)).astype("float32")
    np.testing.assert_array_equal(run(te.compute((5,), largest), A, x), x.argmax(1))
