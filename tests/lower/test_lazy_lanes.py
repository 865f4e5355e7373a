"""`and`, `or` and guards evaluate what is right of them only where it counts, at every stage of lowering."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.page_ends import at_page_ends
from tir.script import parse
from tir.testing.oracle import assert_roundtrip
from tir.visit import walk

LOOP = """
@T.prim_func
def main(N: T.Buffer((4,), "int32"), A: T.Buffer((13,), "int32"), B: T.Buffer((13,), "int32"), n: T.int32):
    for i in {kind}(13):
        with T.block("B"):
            vi = T.axis.spatial(13, i)
            {body}
"""
GUARDS = [
    "if {a} and {b}:\n                B[vi] = 1",
    "if {a} and {b} and B[vi] == 0:\n                B[vi] = 1\n            else:\n                B[vi] = 2",
    "if not ({a}) or {b}:\n                B[vi] = 1",
    "T.where({a} and {b})\n            B[vi] = 1",
    "B[vi] = T.if_then_else({a} and {b}, 1, 2)",
    "B[vi] = T.Select({a} and {b}, 1, 2)",
    "B[vi] = T.Cast('int32', {a} and {b})",
    "if {a} and (not ({a}) or {b}):\n                B[vi] = A[vi]",
]
PARTS = [  # what must hold for the right side to be evaluated
    ("i < N[0]", "A[N[1]] > 0"),
    ("i < N[0]", "100 // N[0] > 3"),
    ("N[0] != 0", "100 // N[0] > 100 // N[0] - i"),
    ("n != 0", "100 // n > 3 and 100 // n < 200"),
    ("A[i] > 0", "20 % A[i] > i"),
    ("A[i] < 13 and A[i] >= 0", "A[A[i] // 2] > 0"),
]
STAGES = ["simplify", "vectorize_loop", "unroll_loop", "storage_rewrite", "common_subexpr_elim"]


def arguments(count):
    a = np.array([3, 0, 99, 5, -1, 7, 12, 13, 1, 0, 4, 2, 10**9], "int32")
    at = {0: 10**9, 3: 2, 13: 0}[count]
    return [np.array([count, at, 1, 2], "int32"), a, np.zeros(13, "int32"), count]


@pytest.mark.parametrize("kind", ["T.vectorized", "T.unroll"])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("a, b", PARTS)
def test_the_right_side_is_evaluated_where_the_left_holds(kind, guard, a, b):
    if "T.where" not in guard:
        a, b = (e.replace("i ", "vi ").replace("[i]", "[vi]").replace("- i", "- vi") for e in (a, b))
        a, b = (e if not e.endswith(" i") else e[:-1] + "vi" for e in (a, b))
    func = parse(LOOP.format(kind=kind, body=guard.format(a=a, b=b)))
    lowered = [tir.lower(func, upto=s)["main"] for s in STAGES]
    stages = list({stage.script(): stage for stage in lowered}.values())  # those that differ
    for stage in stages:
        assert_roundtrip(stage)
    built = tir.build(func, "llvm")
    for count in (0, 3, 13):
        want = arguments(count)
        tir.interp.run(func, *want)
        for run in (built, *(lambda *args, stage=stage: tir.interp.run(stage, *args) for stage in stages)):
            got = arguments(count)
            run(*got)
            np.testing.assert_array_equal(got[2], want[2])


@pytest.mark.parametrize(
    "value",
    [
        "P[vi] >= 0 and P[vi] < 2 and A[P[vi] * 2] > 0",
        "P[vi] < 0 or P[vi] >= 2 or A[P[vi] * 2] > 0",
        "not (P[vi] < 0 or P[vi] >= 2 or A[P[vi] * 2] > 0)",
        "P[vi] != 0 and 8 // P[vi] > 2",
    ],
)
def test_kernels_load_in_no_lane_what_is_guarded_there(value: str) -> None:
    """CUDA has no masks: such a loop is left scalar."""
    func = parse(f"""
@T.prim_func
def main(P: T.Buffer((8,), "int32"), A: T.Buffer((4,), "int32"), C: T.Buffer((8,), "int32")):
    for t in T.thread_binding(2, thread="threadIdx.x"):
        for i in T.vectorized(4):
            with T.block("C"):
                vi = T.axis.spatial(8, t * 4 + i)
                C[vi] = T.Cast("int32", {value})
""")
    places, data = np.array([0, -2000000000, 1, 5, -1, 7, 0, 1], "int32"), np.array([0, 1, 2, 3], "int32")
    results = []
    for target in ("interpreter", "cuda-sim"):
        results.append(np.zeros(8, "int32"))
        tir.build(func, target)(places, data, results[-1])
    np.testing.assert_array_equal(*results)


def test_lets_in_lanes_that_a_guard_leaves_out() -> None:
    """As the two results of an arg-reduction of columns have them: a vector under a mask, not a loop."""
    func = parse("""
@T.prim_func
def main(x: T.handle, at: T.Buffer((16,), "int32"), n: T.int32):
    m = T.int32()
    A = T.match_buffer(x, (m,), "float32")
    for i in T.vectorized(16):
        if i < n:
            with T.LetStmt(A[i] / 2.0) as v:
                with T.LetStmt(T.Select(v > 1.0, i, 100 // (m + i - 1))) as w:
                    at[i] = w + T.Cast("int32", A[m - 1])
""")
    lowered = tir.lower(func)["main"]
    assert not any(isinstance(n, tir.stmt.For) for n in walk(lowered.body))
    built = at_page_ends(tir.build(func, "llvm")["main"])
    for count, size in ((0, 1), (3, 3), (13, 14), (16, 16)):
        data = np.linspace(0, 5, size).astype("float32")
        got, want = np.full(16, -1, "int32"), np.full(16, -1, "int32")
        tir.interp.run(func, data, want, count)
        built(data, got, count)
        np.testing.assert_array_equal(got, want)
