"""Questions about domains, where tiers other than the common ones decide."""

from __future__ import annotations

from tir.analysis.dependence.domains import Injective
from tir.buffer import Range
from tir.expr import Var


def test_indices_of_a_scalar_are_injective_on_one_point_only():
    i = Var("i")
    assert not Injective((), {i: Range.of(0, 4)}).answer().is_proved
    assert Injective((), {i: Range.of(0, 1)}).answer().is_proved
