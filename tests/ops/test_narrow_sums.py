"""Sums of float16 and bfloat16 are added up in float32 and rounded once, unless a call says otherwise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.dtype import DType
from tir.errors import TensorExpressionError
from tir.expr import FloatImm
from tir.interp import run
from tir.ops.cases import Argument, concrete, stored, widened
from tir.stmt import BlockRealize, BufferStore
from tir.visit import walk


def narrow_sums(func: tir.PrimFunc) -> set[str]:
    """The blocks that add or multiply in a narrow float: what they begin with is finite, as it is not for a maximum."""
    blocks = [n.block for n in walk(func) if isinstance(n, BlockRealize) and n.block.init is not None]
    begins = [(b.name, s) for b in blocks for s in walk(b.init) if isinstance(s, BufferStore)]
    narrow = [(name, s.value) for name, s in begins if s.buffer.dtype.is_float and s.buffer.dtype.bits < 32]
    return {name for name, value in narrow if isinstance(value, FloatImm) and math.isfinite(value.value)}


def function(inputs, made) -> tir.PrimFunc:
    return te.create_prim_func([*inputs, *(made if isinstance(made, (list, tuple)) else [made])])


def halved(a: Argument) -> Argument:
    return dataclasses.replace(a, dtype=DType("float16")) if a.dtype.is_float else a


def test_no_operator_adds_in_a_narrow_float_by_itself():
    narrow = set()
    for name, found in ops.operators().items():
        for case in found.cases:
            if "float16" not in map(str, case.attributes.values()):
                call = concrete(case.mapped(halved))
                args, attributes = call.symbolic()
                try:
                    made = found.function(*args, **attributes)
                except TensorExpressionError:  # of wide floats alone
                    continue
                narrow |= {(name, block) for block in narrow_sums(function(call.inputs, made))}
    assert not narrow


def test_products_are_added_in_the_type_that_a_call_says():
    x, w = (te.placeholder(shape, "float16", name=n) for n, shape in (("x", (4, 5)), ("w", (3, 5))))
    for made in (ops.nn.dense(x, w, out_dtype="float16"), ops.einsum("ik,jk->ij", x, w, out_dtype="float16")):
        assert narrow_sums(function([x, w], made))


PRODUCTS = {  # sums of a thousand products of the rows of (4, 1000) and (3, 1000)
    "matmul": lambda x, w: ops.matmul(x, w, transp_b=True),
    "dense": lambda x, w: ops.nn.dense(x, w),
    "vecdot": lambda x, w: ops.vecdot(ops.reshape(x, (4, 1, 1000)), w),
    "einsum": lambda x, w: ops.einsum("ik,jk->ij", x, w),
    "tensordot": lambda x, w: ops.tensordot(x, w, ((1,), (1,))),
    "convolution": lambda x, w: ops.reshape(
        ops.nn.conv2d(ops.reshape(x, (4, 40, 5, 5)), ops.reshape(w, (3, 40, 5, 5))), (4, 3)
    ),
}


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_sum_of_many_products_is_rounded_once(name, kind):
    rng, dtype = np.random.default_rng(0), DType(kind)
    arrays = [stored(rng.uniform(0, 1, shape), dtype) for shape in ((4, 1000), (3, 1000))]
    x, w = (te.placeholder(a.shape, kind, name=n) for n, a in zip("xw", arrays))
    func = function([x, w], PRODUCTS[name](x, w))
    exact = widened(arrays[0], dtype) @ widened(arrays[1], dtype).T
    scheduled = tir.tune.default(func, "llvm")
    for engine in (lambda *a: run(func, *a), tir.build(func, target="llvm"), tir.build(scheduled, target="llvm")):
        made = np.zeros((4, 3), arrays[0].dtype)
        engine(*arrays, made)
        half_a_place = 2.0**-dtype.digits
        np.testing.assert_allclose(widened(made, dtype), exact, rtol=1.01 * half_a_place)


def test_a_bias_is_added_before_the_rounding():
    arrays = [np.array(v, "float16") for v in ([[2048, 1]], [[1, 1]], [-2048])]
    x, w, b = (te.placeholder(a.shape, "float16", name=n) for n, a in zip("xwb", arrays))
    for made in (ops.nn.dense(x, w, b), ops.nn.matmul(x, w, b, transpose_b=True)):
        result = np.zeros((1, 1), "float16")
        run(function([x, w, b], made), *arrays, result)
        assert result == 1
