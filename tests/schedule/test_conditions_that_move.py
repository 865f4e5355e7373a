"""A block that moves takes the conditions around it along, or stays."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

CONSUMER = """
@T.prim_func
def main(M: T.Buffer((4,), "int32"), A: T.Buffer((4, 8), "int32"), D: T.Buffer((4, 8), "int32")):
    B = T.alloc_buffer((4, 8), "int32")
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i in range(4):
        if M[i] > 0:
            for j in range({extent}):
                if {inner}:
                    with T.block("D"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        {written}[vi, vj] = B[vi, vj] + {written}[vi, vj]
"""

STEPS = {
    "reverse_compute_at": lambda s: s.reverse_compute_at("D", "B.i"),
    "reverse_compute_at, innermost": lambda s: s.reverse_compute_at("D", "B.j"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("D"),
}


@pytest.mark.parametrize("inner", ["M[j % 4] > 1", "i + j > 3"])
@pytest.mark.parametrize("step", STEPS)
def test_a_consumer_takes_its_conditions_along(step, inner):
    sch = schedule(CONSUMER.format(inner=inner, extent=8, written="D"))
    STEPS[step](sch)
    assert f"T.where(M[i] > 0 and {inner.replace('j', 'ax0') if step == 'reverse_compute_at' else inner})" in str(
        sch.mod
    )
    same(sch)


def test_a_producer_takes_its_condition_along_and_out_again():
    sch = schedule("""
@T.prim_func
def main(M: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("Z"):
            vi = T.axis.spatial(4, i)
            B[vi] = 0
    for i in range(4):
        if M[i] > 0:
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = B[vi]
""")
    sch.compute_at("B", "D.i")
    same(sch)
    sch.compute_root("B")
    same(sch)


def test_a_condition_that_guards_a_bound_stays():
    """Outside of the `if`, the loop's extent would divide by zero."""
    sch = schedule(CONSUMER.format(inner="True", extent="T.min(8, 64 // M[i])", written="D"))
    for step in STEPS.values():
        refused(lambda step=step: step(sch), "cannot prove")


def test_a_condition_that_its_block_changes_stays():
    text = CONSUMER.format(inner="M[0] > 0", extent=4, written="D").replace("D[vi, vj]", "M[vj]")
    for step in STEPS.values():
        refused(
            lambda step=step: step(schedule(text)),
            "cannot prove that block `D` would run under the condition `M[i] > 0`",
        )


@pytest.mark.parametrize("condition", ["B[i] < 12", "A[B[i] // 30] > 2", "A[i] > 1 and 100 // B[i] > 30"])
def test_a_condition_on_what_the_producer_stores_gets_its_value(condition):
    sch = schedule(f"""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = T.max(T.min(A[vi], 50), 1) * 3
    for i in range(6):
        with T.block("D"):
            vi = T.axis.spatial(6, i)
            T.where({condition})
            D[vi] = B[vi] + 1
""")
    sch.reverse_compute_inline("D")
    assert "B[" not in str(sch.mod)
    same(sch)
