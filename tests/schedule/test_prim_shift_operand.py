"""shift_operand: the same sums for all values, with one operand of the other sign."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te


def product(left: str, right: str, sums: str, k: int = 9) -> tir.PrimFunc:
    a, b, r = (
        te.placeholder((4, k), left, name="a"),
        te.placeholder((k, 5), right, name="b"),
        te.reduce_axis((0, k), "k"),
    )
    return te.create_prim_func(
        [a, b, te.compute((4, 5), lambda i, j: te.sum(a[i, r].astype(sums) * b[r, j].astype(sums), axis=r), name="c")]
    )


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("sums", ["int32", "uint32", "int64"])
@pytest.mark.parametrize("right", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("left", ["int8", "uint8", "uint16"])
def test_sums_are_the_same_where_they_wrap_around_too(left: str, right: str, sums: str, operand: str):
    """All combinations of the least and the greatest numbers: nine products of 16 bits are more than an int32 holds."""
    func, rng = product(left, right, sums), np.random.default_rng(0)
    ends = [np.array([np.iinfo(t).min, 0, 1, np.iinfo(t).max], t) for t in (left, right)]
    a, b = rng.choice(ends[0], (4, 9)), rng.choice(ends[1], (9, 5))
    sch = tir.Schedule(func)
    sch.shift_operand("c", operand)
    found, wanted = np.zeros((4, 5), sums), np.zeros((4, 5), sums)
    tir.interp.run(func, a, b, wanted)
    tir.interp.run(sch.mod["main"], a, b, found)
    np.testing.assert_array_equal(found, wanted)
    stored = {str(b.dtype) for b in sch.func.root.alloc_buffers if b.name == f"{operand}_shifted"}
    assert stored == {
        {"int8": "uint8", "uint8": "int8", "int16": "uint16", "uint16": "int16"}[left if operand == "a" else right]
    }


def test_an_empty_sum_leaves_its_results_as_they_were():
    """A sum over no terms sets nothing: what was added is taken off of nothing."""
    k = te.var("k")
    func = product("int8", "int8", "int32", k)
    sch = tir.Schedule(func)
    sch.shift_operand("c", "b")
    for length in (0, 3):
        a, b = np.full((4, length), -128, "int8"), np.full((length, 5), 127, "int8")
        found, wanted = np.full((4, 5), 7, "int32"), np.full((4, 5), 7, "int32")
        tir.interp.run(func, a, b, wanted)
        tir.interp.run(sch.mod["main"], a, b, found)
        np.testing.assert_array_equal(found, wanted)
