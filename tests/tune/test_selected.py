"""Sums of what an equality selects, such as scatters and histograms: the rule runs the one iteration that counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tir
from tir import te
from tir.testing import assert_same_result

WIDE, NARROW = "llvm -num-cores=1 -vector_width=512", "llvm -num-cores=2 -vector_width=128"


def scatter(rows: int, width: int, places: int) -> tir.PrimFunc:
    x, at = te.placeholder((rows, width), name="x"), te.placeholder((rows,), "int32", "at")
    k = te.reduce_axis((0, rows), "k")
    made = te.compute((places, width), lambda b, j: te.sum(te.if_then_else(at[k] == b, x[k, j], 0.0), axis=k), name="y")
    return te.create_prim_func([x, at, made])


def lookup(rows: int, width: int, places: int) -> tir.PrimFunc:
    table, at = te.placeholder((places, width), name="table"), te.placeholder((rows,), "int64", "at")
    k = te.reduce_axis((0, places), "k")
    made = te.compute(
        (rows, width),
        lambda i, j: te.sum(te.if_then_else(k.astype("int64") == at[i], table[k, j], 0.0), axis=k),
        name="y",
    )
    return te.create_prim_func([table, at, made])


def histogram(rows: int, width: int, places: int) -> tir.PrimFunc:
    x = te.placeholder((rows, width), "uint8", "x")
    i, j = te.reduce_axis((0, rows), "i"), te.reduce_axis((0, width), "j")
    made = te.compute(
        (places,), lambda b: te.sum((x[i, j].astype("int32") == b).astype("int32"), axis=[i, j]), name="y"
    )
    return te.create_prim_func([x, made])


def largest(rows: int, width: int, places: int) -> tir.PrimFunc:
    """No value is the identity of a maximum that starts at the least finite number: all terms are taken."""
    x, at = te.placeholder((rows, width), name="x"), te.placeholder((rows,), "int32", "at")
    k, low = te.reduce_axis((0, rows), "k"), te.const(-1.0, "float32")
    made = te.compute((places, width), lambda b, j: te.max(te.if_then_else(at[k] == b, x[k, j], low), axis=k), name="y")
    return te.create_prim_func([x, at, made])


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("rows", "width", "places"), [(20, 16, 70), (9, 37, 130)])
@pytest.mark.parametrize("make", [scatter, lookup, histogram])
def test_one_iteration_takes_the_place_of_those_that_add_nothing(
    make: Callable[[int, int, int], tir.PrimFunc], rows: int, width: int, places: int, target: str
):
    func = make(rows, width, places)
    sch = tir.tune.default(func, target)
    assert "select_iteration" in str(sch.trace)
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_places_beyond_the_result_are_left_out():
    func = scatter(6, 16, 70)
    run = tir.build(tir.tune.default(func, WIDE).mod, WIDE)
    x, at, y = (
        np.ones((6, 16), "float32"),
        np.array([-1, 70, 3, 2**31 - 1, -(2**31), 3], "int32"),
        np.ones((70, 16), "float32"),
    )
    run(x, at, y)
    assert y.sum() == y[3].sum() == 32


def test_a_term_that_counts_otherwise_keeps_the_loop():
    func = largest(9, 16, 70)
    sch = tir.tune.default(func, WIDE)
    assert "select_iteration" not in str(sch.trace)
    assert_same_result(func, sch.mod, engines=("llvm",))


def test_few_results_are_vectors():
    func = histogram(9, 16, 20)
    assert "select_iteration" not in str(tir.tune.default(func, WIDE).trace)
