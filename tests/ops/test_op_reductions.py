"""Reductions: types, axes, empty tensors, what is refused; several in one function."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.analysis.reduction_forms import Reduction
from tir.errors import TensorExpressionError
from tir.interp import run
from tir.stmt import BlockRealize
from tir.visit import walk

X = te.placeholder((3, 4), "float32", name="X")
HALF = te.placeholder((3, 4), "float16", name="HALF")
NONE = te.placeholder((3, 0), "float32", name="NONE")
BYTES = te.placeholder((3, 4), "int8", name="BYTES")


@pytest.mark.parametrize(
    "made, dtype",
    [
        (lambda: ops.sum(BYTES), "int64"),
        (lambda: ops.sum(te.placeholder((3,), "uint16")), "uint64"),
        (lambda: ops.sum(te.placeholder((3,), "bool")), "int64"),
        (lambda: ops.sum(BYTES, dtype="int32"), "int32"),
        (lambda: ops.sum(HALF), "float16"),
        (lambda: ops.cumprod(BYTES, axis=0), "int64"),
        (lambda: ops.max(BYTES), "int8"),
        (lambda: ops.mean(BYTES, dtype="float64"), "float64"),
        (lambda: ops.argmin(X), "int64"),
    ],
)
def test_types_of_results(made, dtype):
    assert made().dtype == dtype


def accumulators(tensor: te.Tensor) -> set[str]:
    """The types that the function of a tensor reduces in."""
    func = te.create_prim_func([HALF, tensor])
    inits = [n.block.init for n in walk(func) if isinstance(n, BlockRealize) and n.block.init is not None]
    return {str(s.buffer.dtype) for s in inits}


def test_narrow_floats_are_accumulated_in_float32_unless_said():
    assert accumulators(ops.sum(HALF)) == accumulators(ops.mean(HALF, axis=0)) == {"float32"}
    assert accumulators(ops.sum(HALF, acc_dtype="float16")) == {"float16"}
    assert accumulators(ops.var(HALF, acc_dtype="float64")) == {"float64"}


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_may_be_found_in_any_order(name):
    """The analysis takes them for reductions, so that they may be split among threads."""
    func = te.create_prim_func([X, getattr(ops, name)(X, axis=1, dtype="int32")])
    sch = tir.Schedule(func)
    assert Reduction.of(sch.get(sch.get_block(name))) is not None
    inner = sch.split(sch.get_loops(name)[-1], [None, 2])[-1]
    sch.rfactor(inner, 0)


REFUSED = {
    "axis beyond": (lambda: ops.sum(X, axis=2), "axis 2 is none of a tensor of 2 dimensions", "from -2 to 1"),
    "axis twice": (lambda: ops.sum(X, axis=(0, -2)), "names an axis twice"),
    "a float axis": (lambda: ops.max(X, axis=0.5), "axis is an integer, not 0.5"),
    "axis of a scalar": (lambda: ops.sum(te.placeholder(()), axis=0), "a tensor of 0 dimensions has no axes"),
    "largest of none": (lambda: ops.max(NONE, axis=1), "have no elements"),
    "position in none": (lambda: ops.argmax(NONE), "have no elements"),
    "mean of integers": (lambda: ops.mean(BYTES), "a mean is a float", 'dtype="float32"'),
    "largest of bools": (lambda: ops.max(te.placeholder((3,), "bool")), "takes integer or float"),
    "a float position": (lambda: ops.argmax(X, dtype="float32"), "positions are integers"),
    "no tensor": (lambda: ops.sum([1, 2]), "sum(x=[1, 2]): x is a tensor, not [1, 2]"),
    "an array": (lambda: ops.sum(np.ones((2, 3))), "x is a tensor, not ndarray (2, 3) float64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_say_what_is_wrong(name):
    call, *texts = REFUSED[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    for text in texts:
        assert text in str(caught.value)
    assert caught.value.place.filename == __file__


def test_blocks_of_two_cumulative_sums_have_names_of_their_own():
    y = ops.cumsum(ops.cumsum(X, axis=0), axis=1)
    sch = tir.Schedule(te.create_prim_func([X, y]))
    assert {sch.get(sch.get_block(name)).name for name in ("cumsum", "cumsum_1")} == {"cumsum", "cumsum_1"}
    assert not sch.can.parallel(sch.get_loops("cumsum")[0])
    sch.parallel(sch.get_loops("cumsum")[1])
    sch.parallel(sch.get_loops("cumsum_1")[0])
    x, out = np.arange(12, dtype="float32").reshape(3, 4), np.zeros((3, 4), "float32")
    tir.build(sch.mod, "llvm")(x, out)
    np.testing.assert_array_equal(out, x.cumsum(0).cumsum(1))


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int8"])
def test_the_last_of_equal_elements_that_are_the_identity(dtype):
    """No unsigned number is below all positions."""
    least, greatest = te.placeholder((3,), "int8", name="least"), te.placeholder((3,), "uint8", name="greatest")
    made = [
        ops.argmax(least, select_last_index=True, dtype=dtype),
        ops.argmin(greatest, select_last_index=True, dtype=dtype),
    ]
    results = [np.zeros((), dtype) for _ in made]
    run(te.create_prim_func([least, greatest, *made]), np.full(3, -128, "int8"), np.full(3, 255, "uint8"), *results)
    assert [int(r) for r in results] == [2, 2]
