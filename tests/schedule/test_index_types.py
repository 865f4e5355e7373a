"""Programs with indices in 64 and in 32 bits, compared in one form."""

from __future__ import annotations

import pytest

from tir.equal import structural_equal
from tir.expr import const
from tir.schedule.index_types import MOST, same_size, with_narrow_indices
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "int32")):
    for i in range({low}, {high}):
        A[i * 2 + {one}] = 1
"""


def body(low, high, one, wide: bool):
    spelled = [f"T.int64({n})" if wide else n for n in (low, high, one)]
    return parse(PROGRAM.format(low=spelled[0], high=spelled[1], one=spelled[2])).body


@pytest.mark.parametrize(("low", "high"), [(0, 8), (1, 8), (0, 0), (3, 4)])
def test_loops_of_either_width_are_one(low, high):
    narrow, wide = (with_narrow_indices(body(low, high, 1, w)) for w in (False, True))
    assert structural_equal(narrow, wide, map_free_vars=True)


def test_a_domain_that_does_not_fit_stays_wide():
    for low, high in ((0, MOST + 2), (-1, 8)):
        wide = body(low, high, 1, True)
        assert with_narrow_indices(wide) is wide


def test_sizes_of_either_width():
    assert same_size(const(4, "int64"), const(4)) and same_size(const(4), const(4, "int64"))
    assert not same_size(const(4, "int64"), const(5))
