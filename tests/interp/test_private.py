"""The ``private`` clause: what a loop's iterations have for themselves, by the program and not by a proof."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule
from tir.interp import run
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((2,), "float32")
    for i in LOOP:
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            FILL
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[0] + T.float32(1)
"""
EXPRESSION = "C[0] = T.if_then_else(A[vi] > T.float32(1), A[vi], A[vi] * T.float32(2))"
BRANCHES = """if A[vi] > T.float32(1):
                C[0] = A[vi]
            else:
                C[0] = A[vi] * T.float32(2)"""
A = np.arange(8, dtype="float32") / 4
B = np.where(A > 1, A, 2 * A) + 1


def program(loop: str, fill: str = EXPRESSION) -> str:
    return PROGRAM.replace("LOOP", loop).replace("FILL", fill)


@pytest.mark.parametrize("kind", ["parallel", "vectorized", "serial", "unroll"])
@pytest.mark.parametrize("fill", [EXPRESSION, BRANCHES])
def test_each_iteration_has_its_own_copy(kind, fill):
    func = parse(program(f"T.{kind}(8, private=[C])", fill))
    out = np.zeros(8, "float32")
    run(func, A, out)
    np.testing.assert_allclose(out, B)
    assert tir.structural_equal(parse(func.script()), func)
    assert not tir.structural_equal(func, parse(program(f"T.{kind}(8)", fill)))


@pytest.mark.parametrize("fill", [EXPRESSION, BRANCHES])
def test_without_the_clause_it_is_a_race_however_it_is_filled(fill):
    func = parse(program("T.parallel(8)", fill))
    with pytest.raises(tir.RunError, match=r"race on C\[0\].*mark it private \(privatize\)"):
        run(func, A, np.zeros(8, "float32"))


@pytest.mark.parametrize("fill", [EXPRESSION, BRANCHES])
def test_built_programs_go_by_the_clause(fill):
    out = np.zeros(8, "float32")
    tir.build(parse(program("T.parallel(8, private=[C])", fill)))["main"](A, out)
    np.testing.assert_allclose(out, B)


def test_a_copy_starts_uninitialised():
    func = parse(program("T.serial(8, private=[C])", "if vi < 1:\n                C[0] = A[vi]"))
    with pytest.raises(tir.RunError, match="nothing has written yet"):
        run(func, A, np.zeros(8, "float32"))


def test_what_iterations_need_is_inferred_at_the_front_door_only():
    plain = parse(program("T.parallel(8)"))
    assert "private=[C]" in tir.Schedule(plain).script()
    assert "private" not in plain.script()
    out = np.zeros(8, "float32")
    tir.build(plain)["main"](A, out)
    np.testing.assert_allclose(out, B)
    stage = tir.lower(plain, upto="plan_and_update_buffer_allocation_location").script()
    assert "private" not in stage and stage.index("T.parallel") < stage.index("alloc_buffer")


@pytest.mark.parametrize(
    ("clause", "why"),
    [("A", "no block around the loop allocates it"), ("D", "it is used outside of the loop")],
)
def test_a_clause_that_cannot_be_is_not_well_formed(clause, why):
    text = program(f"T.parallel(8, private=[{clause}])")
    text = text.replace(
        "    C = T.alloc", '    D = T.alloc_buffer((1,), "float32")\n    D[0] = T.float32(1)\n    C = T.alloc'
    )
    with pytest.raises(tir.TirError, match=f"`{clause}` is private to loop `i`, but {why}"):
        parse(text)


def test_what_is_private_is_a_list_of_buffers():
    with pytest.raises(tir.ParseError, match="`private` of T.parallel lists the buffers"):
        parse(program("T.parallel(8, private=3)"))


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.set_scope("C", 0, "local"),
        lambda s: s.transform_layout("C", ("write", 0), lambda i: i + 1),
        lambda s: s.annotate("C", "note", 1),
        lambda s: s.cache_write("C", 0, "local"),
        lambda s: s.cache_read("B", 0, "local"),
        lambda s: s.add_unit_loop("C"),
        lambda s: s.blockize(s.add_unit_loop("B")),
    ],
)
def test_steps_keep_the_clause_as_long_as_it_is_needed(step):
    sch = schedule(program("range(8)"))
    sch.parallel("i")
    assert "private=[C]" in sch.script()
    step(sch)
    same(sch)
    buffers = [b for ref in sch.state.index.blocks.values() for b in ref.block.alloc_buffers]
    assert ("private=[" in sch.script()) is bool(buffers)
    out = np.zeros(8, "float32")
    tir.build(sch.mod)["main"](A, out)
    np.testing.assert_allclose(out, B)


def test_a_block_placed_under_a_parallel_loop_is_private_to_it():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((12,), "float32"), D: T.Buffer((10,), "float32")):
    C = T.alloc_buffer((12,), "float32")
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = A[vi] * T.float32(2)
    for i in range(10):
        with T.block("D"):
            vi = T.axis.spatial(10, i)
            D[vi] = C[vi] + C[vi + 2]
""")
    loop = sch.get_loops("D")[0]
    sch.parallel(loop)
    assert "private" not in sch.script()
    sch.compute_at("C", loop)
    assert "private=[C]" in sch.script()
    same(sch)
    sch.compute_root("C")
    assert "private" not in sch.script()
    same(sch)


def test_privatize_by_hand_and_what_it_refuses():
    sch = schedule(program("range(8)", BRANCHES))
    refused(lambda: sch.parallel("i"), "cannot prove")
    sch.privatize("i", "C", unsafe=True)
    sch.parallel("i")
    same(sch)
    refused(lambda: schedule(program("range(8)")).privatize("i", "A"), "no block around loop `i` allocates")


def test_a_clause_is_proved_and_stays_while_it_is_needed():
    sch = schedule(program("range(8)", BRANCHES))
    refused(lambda: sch.annotate("i", "private", ["C"]), "privatize adds it once it is proved")
    sch.privatize("i", "C", unsafe=True)
    copy = sch.copy()
    sch.parallel("i")
    refused(lambda: sch.unannotate("i", "private"), "run in no order, each with its own C")
    copy.unannotate("i", "private")
    assert "private" not in copy.script()


CARRIED = """
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), O: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((4,), "int32")
    for i in T.serial(4, private=[S]):
        for k in range(6):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
                O[vi] = S[vi]
"""


def test_a_private_sum_is_not_begun_anew_by_a_reorder():
    sch = schedule(CARRIED)
    refused(
        lambda: sch.reorder("k", "i"), "each iteration of `i` has a copy of `S`", "inside of `k` it would begin anew"
    )
    sch.unannotate("i", "private")
    sch.reorder("k", "i")
    same(sch)


def test_a_private_value_of_each_iteration_moves_with_its_loop():
    sch = schedule(
        CARRIED.replace(
            "with T.init():\n                    S[vi] = 0\n                S[vi] = S[vi] + A[vi, vk]",
            "S[vi] = A[vi, vk]",
        )
    )
    sch.reorder("k", "i")
    same(sch)


def test_global_memory_is_not_copied_for_an_iteration_inside_of_a_kernel():
    text = """
@T.prim_func
def main(n: T.int32, C: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((1,), "int32", scope="{scope}")
    for u in T.thread_binding(1, thread="threadIdx.x"):
        for i in T.vectorized(4, private=[S]):
            with T.block("start"):
                S[0] = 0
            for k in range(n):
                with T.block("sum"):
                    vk = T.axis.reduce(n, k)
                    S[0] = S[0] + vk
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = S[0]
"""
    with pytest.raises(tir.errors.BuildError, match="a kernel has none of its own"):
        tir.build(parse(text.replace("{scope}", "global")), "cuda-sim")
    kernel = tir.build(parse(text.replace("{scope}", "local")), "cuda-sim")
    result = np.zeros(4, "int32")
    kernel(5, result)
    assert result.tolist() == [10] * 4


@pytest.mark.parametrize("fill", [EXPRESSION, BRANCHES])
def test_a_split_keeps_what_iterations_have_for_themselves(fill):
    sch = schedule(program("range(8)", fill))
    sch.privatize("i", "C", unsafe=True)
    outer, inner = sch.split("i", [None, 4])
    assert [bool(sch.get(loop).private) for loop in (outer, inner)] == [False, True]
    same(sch)
    sch.parallel(outer)
    if fill is EXPRESSION:
        sch.vectorize(inner)
    same(sch)
    out = np.zeros(8, "float32")
    tir.build(sch.mod)["main"](A, out)
    np.testing.assert_allclose(out, B)


def test_a_fusion_keeps_the_clause_of_the_innermost_loop():
    sch = schedule(program("range(8)"))
    sch.privatize("i", "C")
    outer, inner = sch.split("i", [None, 4])
    fused = sch.fuse(outer, inner)
    assert len(sch.get(fused).private) == 1
    sch.parallel(fused)
    same(sch)
    sch = schedule(program("range(8)"))
    outer, inner = sch.split("i", [None, 4])
    sch.privatize(outer, "C")
    refused(lambda: sch.fuse(outer, inner), "has annotations (private) that fuse would drop")


def test_a_cut_tail_would_use_the_buffer_after_the_loop():
    sch = schedule(program("range(8)"))
    sch.privatize("i", "C")
    refused(lambda: sch.split("i", [None, 3], tail="cut"), "has annotations (private) that split would drop")
    sch.split("i", [None, 3])
    same(sch)


def test_a_sum_of_an_inner_loop_is_not_begun_anew():
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((4, 4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    C = T.alloc_buffer((1,), "float32")
    for o, i in T.grid(4, 4):
        for k in range(4):
            with T.block("C"):
                vo, vi, vk = T.axis.remap("SSR", [o, i, k])
                with T.init():
                    C[0] = T.float32(0)
                C[0] += A[vo, vi, vk]
        with T.block("B"):
            vo, vi = T.axis.remap("SS", [o, i])
            B[vo, vi] = C[0]
"""
    )
    sch.privatize("i", "C")
    sch.parallel("o")
    same(sch)
    refused(lambda: sch.reorder("C.k", "i"))


def test_a_condition_on_data_that_changes_in_between():
    """What is filled where `D[vi]` is positive is not what is read where it is positive later."""
    sch = schedule(
        """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((1,), "int32")
    for i in range(8):
        with T.block("fill"):
            vi = T.axis.spatial(8, i)
            if D[vi] > 0:
                C[0] = A[vi]
        with T.block("flip"):
            vi = T.axis.spatial(8, i)
            D[vi] = 1
        with T.block("use"):
            vi = T.axis.spatial(8, i)
            if D[vi] > 0:
                B[vi] = C[0]
"""
    )
    refused(lambda: sch.privatize("i", "C"), "it is not shown that an iteration writes each element")
    refused(lambda: sch.parallel("i"), "cannot prove")
