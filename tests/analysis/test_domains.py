"""Questions about domains, where tiers other than the common ones decide."""

from __future__ import annotations

import itertools

import pytest

from tests.prim_checks import schedule
from tir.analysis.dependence.domains import Injective, RunsWholeDomain
from tir.analysis.dependence.tiers import Tier
from tir.analysis.index import index_of
from tir.buffer import Range
from tir.expr import Var, const


def test_indices_of_a_scalar_are_injective_on_one_point_only():
    i = Var("i")
    assert not Injective((), {i: Range.of(0, 4)}).answer().is_proved
    assert Injective((), {i: Range.of(0, 1)}).answer().is_proved


def test_digits_of_any_length_are_injective_and_remainders_are_not():
    """Also of a length that no linear condition describes, and of which the last digit takes a part of its values."""
    i, n = Var("i"), Var("n")
    padded = {i: Range(const(0), (n * n + 15) // 16 * 16)}
    assert Injective((i // 48, i % 48), padded).answer().is_proved
    assert not Injective((i // 48, i % 32), padded).answer().is_proved


REPEATED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
    for t in range(FIRST):
        for i in range(8):
            for u in range(SECOND):
                with T.block("A"):
                    v = T.axis.spatial(8, i)
                    A[v] = 1.0
"""


@pytest.mark.parametrize(("first", "second"), [*itertools.product(("4", "1", "n", "n * n + 1", "m + 1"), repeat=2)])
def test_a_loop_that_may_be_empty_leaves_the_domain_out(first, second):
    """Loops that no iterator uses repeat the block, at least once if none of them can be empty."""
    sch = schedule(REPEATED.replace("FIRST", first).replace("SECOND", second))
    question = RunsWholeDomain(index_of(sch.mod["main"]).blocks["A"])
    shown = {first, second} <= {"4", "1"}
    assert question.answer_by(Tier.ITERATOR_MAP).is_proved == shown
