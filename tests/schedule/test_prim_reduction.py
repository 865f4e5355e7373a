"""decompose_reduction, rfactor: at each loop, with tails, and any commutative update."""

from __future__ import annotations

import pytest
from prim_checks import refused, same, schedule

import tir
from tir.analysis.index import index_of
from tir.errors import ScheduleError
from tir.script import parse
from tir.testing import assert_same_result

MATMUL = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

REDUCER = """
@T.prim_func
def main(A: T.Buffer((16, 12), "{t}"), C: T.Buffer((16,), "{t}")):
    for i, k in T.grid(16, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {id}
            C[vi] = {f}
"""

SYMBOLIC = """
@T.prim_func
def main(a: T.handle, C: T.Buffer((4,), "float32"), n: T.int32):
    A = T.match_buffer(a, (4, n), "float32")
    for i, k in T.grid(4, n):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(3)
            C[vi] = C[vi] - A[vi, vk]
"""

DECOMPOSED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i in range(16):
        for j_init in range(16):
            with T.block("C_init"):
                vi, vj = T.axis.remap("SS", [i, j_init])
                C[vi, vj] = T.float32(0)
        for j, k in T.grid(16, 16):
            with T.block("C_update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def test_decompose_golden():
    sch = schedule(MATMUL)
    init = sch.decompose_reduction("C", "j")
    same(sch, DECOMPOSED)
    assert init.name == "C_init"


@pytest.mark.parametrize("loop", ["i", "j", "k"])
def test_decompose_at_each_loop(loop):
    sch = schedule(MATMUL)
    sch.decompose_reduction("C", loop)
    same(sch)


def test_decompose_tails():
    sch = schedule(MATMUL)
    a, b = sch.split("k", [None, 5])
    c, d = sch.split("j", [None, 5])
    sch.reorder(c, a, d, b)
    sch.decompose_reduction("C", a)
    same(sch)


def test_decompose_inside_a_reduction_loop():
    sch = schedule(MATMUL)
    sch.reorder("k", "i")
    inside = sch.copy()
    inside.decompose_reduction("C", "i")
    assert "T.where(k == 0)" in inside.script()
    same(inside)
    sch.decompose_reduction("C", "k")
    same(sch)
    refused(lambda: sch.decompose_reduction("C_update", "k"), "no T.init()")


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_rfactor_axis(axis):
    sch = schedule(MATMUL)
    sch.rfactor("k", axis)
    same(sch)


def test_rfactor_of_wrong_loops_and_axes():
    refused(lambda: schedule(MATMUL).rfactor("k", 3), "factor_axis 3")
    error = refused(lambda: schedule(MATMUL).rfactor("i", 0), "does not only reduce", "for vi")
    assert error.legal == "k"


@pytest.mark.parametrize("factor", [4, 5])
@pytest.mark.parametrize("which", [0, 1])
def test_rfactor_of_a_split(factor, which):
    sch = schedule(MATMUL)
    loops = sch.split("k", [None, factor])
    sch.rfactor(loops[which], 0)
    same(sch)


@pytest.mark.parametrize(
    "dtype, start, update",
    [
        ("float32", 'T.min_value("float32")', "T.max(C[vi], A[vi, vk])"),
        ("float32", "T.float32(0)", "T.max(C[vi], A[vi, vk])"),
        ("float32", 'T.max_value("float32")', "T.min(A[vi, vk], C[vi])"),
        ("int32", 'T.min_value("int32")', "T.max(C[vi], A[vi, vk])"),
        ("float32", "T.float32(1)", "C[vi] * A[vi, vk]"),
        ("float32", "T.float32(3)", "C[vi] + A[vi, vk]"),
        ("float32", "T.float32(0)", "C[vi] - A[vi, vk]"),
    ],
)
def test_reducers(dtype, start, update):
    sch = schedule(REDUCER.format(t=dtype, id=start, f=update))
    _, inner = sch.split("k", [None, 4])
    sch.rfactor(inner, 0)
    same(sch)


@pytest.mark.parametrize("update", ["A[vi, vk] - C[vi]", "C[vi] * A[vi, vk] + T.float32(1)", "C[vi] + C[vi]"])
def test_updates_that_do_not_commute(update):
    sch = schedule(REDUCER.format(t="float32", id="T.float32(0)", f=update))
    refused(lambda: sch.rfactor("k", 0), "block `C`")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("n", [2, 7])
def test_symbolic_tail(which, n):
    sch = schedule(SYMBOLIC)
    loops = sch.split("k", [None, 4])
    sch.rfactor(loops[which], 1)
    same(sch, n=n)


@pytest.mark.parametrize("n", [1, 6])
def test_partial_results_without_terms_are_what_they_start_from(n):
    """All of them are set and combined, if there is a term at all: the condition on each is in its update."""
    sch = schedule(SYMBOLIC)
    _, part = sch.split("k", [None, 4])
    partial = sch.rfactor(part, 1)
    init = sch.decompose_reduction(partial, sch.get_loops(partial)[1])
    predicates = [str(index_of(sch.func).blocks[b.name].node.predicate) for b in (sch.get(init), sch.get(partial))]
    assert predicates == ["True", "True"]
    assert str(index_of(sch.func).blocks["C"].node.predicate) == "n > 0"
    same(sch, n=n)


def test_rfactor_after_decompose():
    sch = schedule(SYMBOLIC)
    sch.decompose_reduction("C", "i")
    sch.rfactor("k", 0)
    same(sch, n=5)


PARTS = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 12):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(16, {value})
            T.where({condition})
            with T.init():
                C[vi] = 0.0
            C[vi] += A[vi, vk]
"""


LATE = "the init of block C runs after other updates of the same result, which it undoes"
NEVER = "the init of block C does not run for every result"
CONTINUED = "block C is a continuation of a partitioned reduction: vk starts past 0"


@pytest.mark.parametrize(
    ("value", "condition", "hoisted", "factored"),
    [
        ("k", "k < 5", None, None),
        ("k", "k <= i", None, None),
        ("k", "k + i < 15", None, None),
        ("k", "k < i", None, None),  # of the first result nothing
        ("k", "k != 3", None, None),
        ("k", "k >= 1", None, NEVER),
        ("k", "k >= i", None, NEVER),
        ("k", "6 - i < k", None, NEVER),
        ("k + 1", "k < 9", None, CONTINUED),
        ("(k + 8) % 12", "k >= 4", None, NEVER),  # begins in the middle: the partial results do not
        ("(k + 8) % 12", "k < 12", LATE, LATE),
        ("(k + 8) % 12", "k >= 4 and k < 4 + i", "cannot hoist init of C before k: for some results", NEVER),
    ],
)
def test_where_a_reduction_starts(value, condition, hoisted, factored):
    text = PARTS.format(value=value, condition=condition)
    hoist, factor = schedule(text), schedule(text)
    for sch, step, why in [
        (hoist, lambda: hoist.decompose_reduction("C", hoist.get_loops("C")[1]), hoisted),
        (factor, lambda: factor.rfactor(factor.get_loops("C")[1], 0), factored),
    ]:
        if why is None:
            step()
            same(sch)
        else:
            assert why in str(refused(step)).replace("`", "")


def test_an_init_declares_what_it_reads():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 16), "int32"), B: T.Buffer((8,), "int32")):
    S = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[vi, 0] * 3
    for i, k in T.grid(8, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = S[vi]
            B[vi] = B[vi] + A[vi, vk]
""")
    init = sch.decompose_reduction("B", "B.k")
    assert [r.buffer.name for r in sch.get(init).reads] == ["S"]
    sch.auto_inline()
    assert "S_" not in sch.mod["main"].script() and "alloc_buffer" not in sch.mod["main"].script()
    same(sch)


def test_domains_that_depend_on_a_loop():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range(T.min(i + 1, 4)):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(T.min(i + 1, 4), k)
                with T.init():
                    C[vi] = 1
                C[vi] = T.max(C[vi], vk * A[vi])
    for i in range(4):
        for k in range(T.min(i, 4)):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(T.min(i, 4), k)
                with T.init():
                    D[vi] = 1
                D[vi] = T.max(D[vi], vk * A[vi])
""")
    refused(lambda: sch.reindex_cache_write("C", "C", "local", lambda i, k: (k, i)), "depends on a loop")
    refused(lambda: sch.blockize("D.i", preserve_unit_iters=True), "may be empty in some iterations of loop i")
    sch.reindex("C", "C")
    sch.reindex("D", "D")
    sch.blockize("C.i", preserve_unit_iters=True)
    same(sch)


def begun_with_a_term(loops: str) -> tir.PrimFunc:
    """A reduction whose init uses the reduction iterator; ``loops`` in this order."""
    extents = ", ".join({"i": "2", "k": "8"}[loop] for loop in loops.split(", "))
    return parse(f"""
@T.prim_func
def f(A: T.Buffer((2, 8), "int32"), W: T.Buffer((8, 2), "int32"), S: T.Buffer((2,), "int32")):
    for {loops} in T.grid({extents}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = W[vk, vi]
            S[vi] += A[vi, vk]
""")


@pytest.mark.parametrize("step", [("rfactor", "k", 1), ("blockize", "i"), ("decompose_reduction", "S", "k")])
def test_an_init_that_uses_a_reduction_iterator_stays_with_it(step):
    with pytest.raises(ScheduleError, match="the init of block `S` uses reduction iterator vk"):
        getattr(tir.Schedule(begun_with_a_term("i, k")), step[0])(*step[1:])


def test_an_init_that_uses_the_iterator_of_the_outer_block_is_moved_to_it():
    func = begun_with_a_term("k, i")
    sch = tir.Schedule(func)
    sch.blockize("i")
    assert_same_result(func, sch.mod)


OVERLAPPING = """
@T.prim_func
def main(A: T.Buffer((4, 3, 4), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(4, 3):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk, 0:4])
            T.writes(B[vi * STEP : vi * STEP + 4])
            with T.init():
                for x in range(4):
                    B[vi * STEP + x] = T.float32(0)
            for x in range(4):
                B[vi * STEP + x] = B[vi * STEP + x] + A[vi, vk, x]
"""


def test_an_init_does_not_move_over_the_sum_of_an_instance_that_shares_elements() -> None:
    sch = schedule(OVERLAPPING.replace("STEP", "2"))
    i, k = sch.get_loops("B")
    refused(lambda: sch.decompose_reduction("B", i), "write the same element of B", "goes to [2]")
    sch.decompose_reduction("B", k)
    same(sch)


def test_results_of_other_iterations_around_the_loop_may_share_elements() -> None:
    sch = schedule(MATMUL.replace("C[vi, vj]", "C[vi + vj, 0]").replace("C: T.Buffer((16", "C: T.Buffer((31"))
    refused(lambda: sch.decompose_reduction("C", "i"), "write the same element of C", "(vi=1, vj=0) goes to [1, 0]")
    sch.decompose_reduction("C", "j")
    same(sch)


def test_tiles_that_share_nothing_are_decomposed() -> None:
    sch = schedule(OVERLAPPING.replace("STEP", "4"))
    sch.decompose_reduction("B", "i")
    same(sch)


def test_results_in_a_layout_with_a_tail_are_distinct() -> None:
    sch = schedule(REDUCER.format(t="float32", id="T.float32(0)", f="C[vi] + A[vi, vk]").replace("16", "13"))
    sch.transform_layout("C", ("write", 0), lambda i: (i // 4, i % 4))
    sch.decompose_reduction("C", "i")
