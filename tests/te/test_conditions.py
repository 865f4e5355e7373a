"""Conditions of reductions."""

from __future__ import annotations

import tir
from tir import te


def test_a_condition_on_an_axis_of_the_result_leaves_the_element_that_is_updated():
    """A reduction that updates `C[v_i, 0]` where `v_i == 0` is none of `C[v_i]` to the steps."""
    A = te.placeholder((3, 4), "int32", name="A")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((3,), lambda i: te.sum(A[i, k], axis=k, where=i == 0), name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    assert "C[v_i] = C[v_i] + A[v_i, v_k]" in sch.mod.script()
    sch.decompose_reduction("C", sch.get_loops("C")[-1])
