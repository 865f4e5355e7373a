"""Operators of the Array API that were the last to come: what their cases cannot say, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.dtype import DType
from tir.errors import TensorExpressionError
from tir.interp import run
from tir.interp.numbers import array_dtype


def place(*shape, dtype="float32", name="x"):
    return te.placeholder(shape, dtype, name=name)


def refused(match, call):
    with pytest.raises(TensorExpressionError, match=match):
        call()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter_is_exact(dtype):
    info = np.finfo(dtype)
    ends = np.array([0, 1, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan, 1 + info.eps, 2], dtype)
    values = np.concatenate([ends, -ends])
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    a, b = place(len(x), dtype=dtype, name="a"), place(len(x), dtype=dtype, name="b")
    c = ops.nextafter(a, b)
    with np.errstate(all="ignore"):
        expected = np.where(x == y, y, np.nextafter(x, y))  # of float16, NumPy's next after 0 to -0.0 is 0
    for call in (lambda *args: run(te.create_prim_func([a, b, c]), *args), tir.build(ops.schedule(c).mod, "llvm")):
        result = np.ones_like(x)
        call(x, y, result)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result[result == 0]), np.signbit(expected[result == 0]))


def test_nextafter_of_bfloat16():
    a = place(6, dtype="bfloat16", name="a")
    x = np.array([0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F7F, 0x0001], "uint16")
    result = np.zeros_like(x)
    run(te.create_prim_func([a, c := ops.nextafter(a, float("inf"))]), x, result)
    assert c.dtype == "bfloat16"
    assert result.tolist() == [0x0001, 0x0001, 0x3F81, 0xBF7F, 0x7F80, 0x0002]


def test_matmul_at_the_top_is_that_of_nn_with_promoted_types():
    a, b = place(3, 5, dtype="int8", name="a"), place(4, 5, dtype="uint8", name="b")
    made = ops.matmul(a, b, transp_b=True)
    assert made.dtype == "int16"
    other = ops.nn.matmul(a, b, out_dtype="int16", transpose_b=True)
    tir.assert_structural_equal(te.create_prim_func([a, b, made]), te.create_prim_func([a, b, other]))


@pytest.mark.parametrize("product", [ops.matmul, ops.vecdot])
def test_products_are_of_numbers_of_one_kind_and_of_as_many(product):
    refused("no common type of float and integer", lambda: product(place(3, 3), place(3, 3, dtype="int32")))
    refused("an operand is bool", lambda: product(place(3, 3, dtype="bool"), place(3, 3, dtype="bool")))
    refused("3 .* 4", lambda: product(place(2, 3), place(2, 4)))
    refused("is a tensor, not", lambda: product(place(3), 2.0))


def test_vectors_matrices_and_tensors():
    refused("has a dimension at least", lambda: ops.matmul(place(), place(3)))
    refused("of a tensor of 0 dimensions", lambda: ops.vecdot(place(), place(3)))
    refused("do not broadcast", lambda: ops.vecdot(place(2, 3), place(4, 3)))
    refused(r"\(3,\), which is not \(…, n, m\)", lambda: ops.matrix_transpose(place(3)))
    refused("do not broadcast", lambda: ops.broadcast_arrays(place(2), place(3)))
    refused("no tensor", ops.broadcast_arrays)


def test_differences():
    assert ops.diff(place(4, 5), 9).shape == (4, 0)
    refused("taken -1 times", lambda: ops.diff(place(4), -1))
    refused("the tensor is bool", lambda: ops.diff(place(4, dtype="bool")))
    refused("of 0 dimensions", lambda: ops.diff(place()))
    refused("beside axis 1", lambda: ops.diff(place(4, 3), prepend=place(3, 1)))
    assert ops.diff(place(4, dtype="int8"), append=place(2, dtype="uint8")).dtype == "int16"


def test_a_floor_that_is_zero_has_the_sign_of_the_quotient():
    x = np.array([-0.0, -0.0, 0.5, -0.5, -1.0, 0.0, 3.0, -3.0], "float32")
    y = np.array([2.0, -2.0, 2.0, -2.0, -np.inf, -1.0, -np.inf, 2.0], "float32")
    a, b = (te.placeholder((8,), name=name) for name in "ab")
    made = np.empty(8, "float32")
    tir.build(te.create_prim_func([a, b, ops.floor_divide(a, b)]), "llvm")(x, y, made)
    expected = np.floor_divide(x, y)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_floor_of_short_floats_is_exact(dtype):
    kind = array_dtype(DType(dtype))
    x, y = (np.array(v, kind) for v in ([-4.8125, 4.8125, 1000.0, 190.0], [-0.05884, 0.02, 0.75, 1.09]))
    a, b = (te.placeholder((4,), dtype, name=name) for name in "ab")
    made = np.empty(4, kind)
    tir.build(te.create_prim_func([a, b, ops.floor_divide(a, b)]), "llvm")(x, y, made)
    np.testing.assert_array_equal(made, (x.astype("float64") // y.astype("float64")).astype(kind))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_logarithm_of_a_sum_of_short_floats_is_rounded_once(dtype):
    kind = array_dtype(DType(dtype))
    x, y = (np.array(v, kind) for v in ([-0.6953125, -1.0, 3.0], [-0.7890625, -0.5, -0.25]))
    a, b = (te.placeholder((3,), dtype, name=name) for name in "ab")
    made = np.empty(3, kind)
    tir.build(te.create_prim_func([a, b, ops.logaddexp(a, b)]), "llvm")(x, y, made)
    np.testing.assert_array_equal(made, np.logaddexp(x.astype("float64"), y.astype("float64")).astype(kind))
