"""Reductions whose first term takes the place of their start (:mod:`codegen.llvm.starts`)."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.llvm.starts import begin_with_terms
from tir import ops, te


def begun(body: str, dtype: str = "float32") -> str:
    """The program ``body`` over ``x``, and ``y`` where ``part`` is its own, after the pass."""
    text = f"""
@T.prim_func
def main(x: T.Buffer((8,), "{dtype}"), y: T.Buffer((8,), "{dtype}")):
    T.func_attr({{"tir.noalias": True}})
    part_data = T.allocate([8], "{dtype}", "global")
    part = T.decl_buffer((8,), "{dtype}", data=part_data)
{body}"""
    func = tir.script.from_source(text)
    assert isinstance(func, tir.PrimFunc)
    return begin_with_terms(func).script()


def test_a_maximum_begins_with_its_first_term():
    text = begun("""
    y[0] = T.float32("-inf")
    for k in range(4):
        y[0] = T.max(y[0], x[k])
""")
    assert "y[0] = x[0]" in text and "range(1, 4)" in text and "inf" not in text


@pytest.mark.parametrize(
    "start, update",
    [
        ("-inf", "T.max(y[1], x[k])"),
        ("inf", "T.max(y[0], x[k])"),
        ("-inf", "T.max(x[k], y[0])"),
        ("-inf", "T.max(y[0], y[k])"),
        ("-inf", "T.max(y[0], x[k]) + T.float32(1)"),
        ("0", "y[0] + x[k]"),
    ],
    ids=["another place", "no identity", "the other way round", "reads the buffer", "another value", "may be -0.0"],
)
def test_others_are_left(start: str, update: str):
    text = begun(f"""
    y[0] = T.float32("{start}")
    for k in range(4):
        y[0] = {update}
""")
    assert text.count("y[0] =") == 2 and "range(4)" in text


@pytest.mark.parametrize("first, is_joined", [("part[k] + x[k]", True), ("x[k]", False)])
def test_a_sum_of_sums_begins_with_the_first(first: str, is_joined: bool):
    text = begun(f"""
    for k in range(8):
        part[k] = T.float32(0)
        part[k] = {first}
    y[0] = T.float32(0)
    for k in range(8):
        y[0] = y[0] + part[k]
""")
    assert ("y[0] = part[0]" in text) is is_joined


def test_integers_and_conditions_that_agree():
    text = begun(
        """
    for i in range(8):
        if x[0] > 0:
            y[i] = 0
        if i > 3:
            part[i] = 0
        for k in range(1):
            if i > 3:
                part[i] = part[i] + x[k]
        y[i] = part[i]
""",
        "int32",
    )
    assert "part[i] = x[0]" in text and "part[i] +" not in text and "y[i] = 0" in text


@pytest.mark.parametrize(
    "condition, is_joined", [("T.Ramp(0, 1, 8) < T.Broadcast(n, 8)", True), ("T.Ramp(0, 1, 8) < y[0:8]", False)]
)
def test_some_elements_begin_with_their_terms_and_the_others_with_the_identity(condition: str, is_joined: bool):
    """Unless which ones are read from memory, where the start may decide it."""
    text = begun(
        f"""
    n: T.int32 = T.Cast("int32", x[0])
    y[0:8] = T.Broadcast(T.int32(0), 8)
    if {condition}:
        y[0:8] = y[0:8] + x[0:8]
""",
        "int32",
    )
    assert "y[0:8] = T.Broadcast(0, 8)" in text and ("y[0:8] = x[0:8]" in text) is is_joined


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["max", "min", "sum"])
def test_signs_of_zero_and_nan_are_kept(name: str, dtype: str):
    x = te.placeholder((5, 7), dtype, name="x")
    func = te.create_prim_func([x, getattr(ops, name)(x, axis=1)])
    given = np.full((5, 7), -0.0).astype(dtype)
    given[1], given[2, 0] = 3, 5
    if dtype != "int64":
        given[3, 6], given[4] = np.nan, -np.inf
    found = np.empty(5, dtype)
    n, m = te.var("n"), te.var("m")
    of_any_size = te.create_prim_func([x := te.placeholder((n, m), dtype, name="x"), getattr(ops, name)(x, axis=1)])
    wide = "llvm -vector_width=512 -num-cores=1"
    for mod in (func, *(tir.tune.default(f, wide).mod for f in (func, of_any_size))):
        tir.build(mod)(given, found)
        np.testing.assert_array_equal(found, getattr(given, name)(axis=1))
        if name == "sum" and dtype != "int64":
            assert not np.signbit(found[0])
