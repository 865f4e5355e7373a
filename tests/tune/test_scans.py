"""Prefix sums along memory by default: in vectors, with the results of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import ops, te

WIDE, NARROW = "llvm -num-cores=1 -vector_width=512", "llvm -num-cores=2 -vector_width=128"


def scanned(shape: tuple[int, ...], dtype: str, axis: int = -1, name: str = "cumsum") -> tir.PrimFunc:
    x = te.placeholder(shape, dtype, name="x")
    return te.create_prim_func([x, getattr(ops, name)(x, axis)])


def in_steps(func: tir.PrimFunc, target: str = WIDE) -> bool:
    return "double_scan" in str(tir.tune.default(func, target).trace)


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("shape", [(4096,), (3, 1024), (2, 3, 272)])
def test_sums_are_those_of_numpy(target: str, shape: tuple[int, ...]):
    func = scanned(shape, "float32")
    assert in_steps(func, target)
    x, out = np.random.default_rng(0).random(shape, "float32"), np.zeros(shape, "float32")
    tir.build(tir.tune.default(func, target).mod, target)["main"](x, out)
    np.testing.assert_allclose(out, np.cumsum(x.astype("float64"), -1), rtol=1e-5)


def test_products_of_integers_are_exact():
    func = scanned((2, 512), "int32", name="cumprod")
    x = np.random.default_rng(0).choice(np.array([-1, 1], "int32"), (2, 512))
    sch = tir.tune.default(func, WIDE)
    out = np.zeros((2, 512), "int64")
    tir.build(sch.mod, WIDE)["main"](x, out)
    np.testing.assert_array_equal(out, np.cumprod(x, -1, dtype="int64"))


def test_what_is_no_number_of_vectors_or_lies_across_memory_is_left_alone():
    assert not in_steps(scanned((4, 1000), "float32"))
    assert not in_steps(scanned((4, 16), "float32"))
    assert not in_steps(scanned((1024, 64), "float32", axis=0))


@pytest.mark.parametrize(("shape", "scans"), [((4096,), 2), ((2, 64), 2), ((32,), 1), ((4096 + 16,), 1)])
def test_strips_of_a_line_are_scanned_by_themselves(shape: tuple[int, ...], scans: int):
    """Of several strips of 8 vectors of 4 elements, and whole ones."""
    func = scanned(shape, "float32")
    sch = tir.tune.default(func, NARROW)
    assert str(sch.trace.as_python()).count("sch.factor_scan(") == scans
    x, out = np.random.default_rng(0).random(shape, "float32"), np.zeros(shape, "float32")
    tir.build(sch.mod, NARROW)["main"](x, out)
    np.testing.assert_allclose(out, np.cumsum(x.astype("float64"), -1), rtol=1e-5)
