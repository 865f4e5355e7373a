"""Sums of other functions of two operands than products, such as distances: tiled as products are, where an operand lies across."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tir
from tir import te
from tir.testing import assert_same_result

pytestmark = pytest.mark.usefixtures("rules_alone")

SMALL = "llvm -vector_width=64 -num-cores={cores} -l1_bytes=256 -l2_bytes={l2}"
TERMS = {
    "squares": (te.sum, lambda a, b: (a - b) * (a - b)),
    "absolute values": (te.sum, lambda a, b: te.abs(a - b)),
    "greatest": (te.max, lambda a, b: te.abs(a - b)),
    "least sums": (te.min, lambda a, b: a + b),
}


def distances(rows: int, columns: int, terms: int, reducer: Callable, term: Callable, turned: bool = False):
    a = te.placeholder((rows, terms), name="A")
    b = te.placeholder((terms, columns) if turned else (columns, terms), name="B")
    k = te.reduce_axis((0, terms), "k")
    at = (lambda j: (k.var, j)) if turned else (lambda j: (j, k.var))
    d = te.compute((rows, columns), lambda i, j: reducer(term(a[i, k.var], b[at(j)]), axis=k), name="D")
    return te.create_prim_func([a, b, te.compute(d.shape, lambda i, j: d[i, j] * 0.5, name="E")])


def default(func: tir.PrimFunc, cores: int = 1, l2: int = 2048) -> tir.Schedule:
    """The default schedule, which computes the same."""
    sch = tir.tune.default(func, SMALL.format(cores=cores, l2=l2))
    assert_same_result(func, sch.mod, engines=("interpreter", "llvm"), rtol=1e-4)
    return sch


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("sizes", [(60, 32, 12), (61, 27, 7), (17, 9, 70)])
def test_the_second_operand_is_packed_and_a_tile_is_in_registers(sizes: tuple[int, int, int], name: str):
    """Sizes and terms have one core and two in turns."""
    cores = 1 + (sum(sizes) + list(TERMS).index(name)) % 2
    sch = default(distances(*sizes, *TERMS[name]), cores)
    assert "D_init" in sch.mod.script() and "B_" in sch.mod.script()


def test_long_distances_are_summed_in_chunks():
    assert "D_rf" in default(distances(60, 32, 48, *TERMS["squares"]), l2=512).mod.script()


def test_an_operand_that_lies_along_the_results_is_read_in_place():
    assert "B_" not in default(distances(60, 32, 12, *TERMS["least sums"], turned=True)).mod.script()


@pytest.mark.parametrize("dtype, is_left", [("uint8", True), ("int16", False)])
def test_differences_of_bytes_along_a_row_are_left_to_an_instruction_that_sums_them(dtype: str, is_left: bool):
    a, b, k = te.placeholder((6, 40), dtype), te.placeholder((9, 40), dtype), te.reduce_axis((0, 40), "k")
    wide = lambda value: value.astype("int32")  # noqa: E731
    value = lambda i, j: te.sum(te.abs(wide(a[i, k]) - wide(b[j, k])), axis=k)  # noqa: E731
    func = te.create_prim_func([a, b, te.compute((6, 9), value)])
    assert (default(func).func.script() == func.script()) == is_left
