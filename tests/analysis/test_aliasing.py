"""Parameters that may overlap ("tir.noalias" is False): steps know them as names of one memory."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused

import tir
from tir.aliases import with_one_memory, with_own_memory
from tir.interp import run
from tir.script import parse

SHIFT = """
@T.prim_func
def main(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "{dtype}")):
    T.func_attr({{"tir.noalias": {noalias}}})
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = {value}
"""


def shift(noalias: bool = False, dtype: str = "int32") -> tir.Schedule:
    value = "A[vi] + 1" if dtype == "int32" else 'T.Cast("int16", A[vi])'
    return tir.Schedule(parse(SHIFT.format(noalias=noalias, dtype=dtype, value=value)))


def reordered(sch: tir.Schedule) -> None:
    outer, inner = sch.split("i", [None, 4])
    sch.reorder(inner, outer)


STEPS = {
    "parallel": lambda s: s.parallel("i"),
    "vectorize": lambda s: s.vectorize("i"),
    "bind": lambda s: s.bind("i", "threadIdx.x"),
    "reorder": reordered,
    "cache_read": lambda s: s.cache_read("B", 0, "global"),
    "cache_write": lambda s: s.cache_write("B", 0, "global"),
    "reindex of the read": lambda s: s.reindex("B", "A"),
    "reindex of the write": lambda s: s.reindex("B", "B"),
    "reindex_cache_read": lambda s: s.reindex_cache_read("B", 0, "global", lambda i: i),
    "reindex_cache_write": lambda s: s.reindex_cache_write("B", 0, "global", lambda i: i),
    "transform_layout": lambda s: s.transform_layout("B", "A", lambda i: (i // 4, i % 4), pad_value=0),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("dtype", ["int32", "int16"])
def test_steps_that_two_names_of_one_memory_forbid(step, dtype: str) -> None:
    refused(lambda: step(shift(dtype=dtype)))
    step(shift(noalias=True, dtype=dtype))


def test_the_witness_names_both() -> None:
    refused(lambda: shift().parallel("i"), "`A` and `B` may be the same memory", "B at (i=0) writes B")
    answer = shift().can.parallel("i")
    assert not answer and "may be the same memory" in answer.reason and "data=" not in answer.reason


TWO = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    T.func_attr({"tir.noalias": False})
    D = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = A[vi] + 1
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = D[vi] * 2
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = D[15 - vi]
"""

MOVES = {
    "compute_at": lambda s: s.compute_at("D", "C.i"),
    "compute_inline": lambda s: s.compute_inline("D"),
    "merge": lambda s: s.merge("B.i", "C.i"),
    "reverse_compute_at": lambda s: s.reverse_compute_at("B", "D.i"),
    "parallel": lambda s: s.parallel("D.i"),
}


@pytest.mark.parametrize("step", MOVES.values(), ids=MOVES)
def test_what_moves_over_a_store_to_possibly_the_same_memory(step) -> None:
    func = parse(TWO)
    sch = tir.Schedule(func)
    try:
        step(sch)
    except tir.ScheduleError as error:
        assert "fault inside" not in str(error)
        return
    for a, b, c in ((0, 0, 0), (0, 3, 5), (5, 0, 2), (4, 4, 0)):
        results = []
        for program in (func, sch.mod["main"]):
            memory = np.arange(32, dtype="int32")
            run(program, memory[a : a + 16], memory[b : b + 16], memory[c : c + 16])
            results.append(memory)
        np.testing.assert_array_equal(*results)


def test_the_program_keeps_a_pointer_for_each_parameter() -> None:
    func = parse(SHIFT.format(noalias=False, dtype="int32", value="A[vi] + 1"))
    sch = tir.Schedule(func)
    tir.assert_structural_equal(sch.mod["main"], func)
    assert sch.mod is sch.mod and sch.func.buffers() == sch.mod["main"].buffers()
    sch.split("i", [None, 4])
    a, b = sch.mod["main"].buffers()
    assert a.data is not b.data and "data=" not in sch.script() + sch.diff() + str(sch.history[1].mod)
    x = np.zeros(17, "int32")
    tir.build(sch.mod, "llvm")(x, x)
    np.testing.assert_array_equal(x, np.arange(17))
    tir.assert_structural_equal(sch.trace.replay(func).mod, sch.mod)


def test_a_buffer_is_known_as_an_object() -> None:
    func = parse(SHIFT.format(noalias=False, dtype="int32", value="B[vi + 1] + 1"))
    sch = tir.Schedule(func)
    sch.cache_write("B", sch.mod["main"].buffers()[1], "global")
    assert "B_global" in sch.script()


def test_one_memory_and_back() -> None:
    func = parse(SHIFT.format(noalias=False, dtype="int32", value="A[vi] + 1"))
    one = with_one_memory(func)
    assert len({b.data for b in one.buffers()}) == 1
    assert with_own_memory(one) is func and with_one_memory(func) is one
    plain = parse(SHIFT.format(noalias=True, dtype="int32", value="A[vi] + 1"))
    assert with_one_memory(plain) is plain and with_own_memory(plain) is plain


PASSED = SHIFT.replace("B[vi + 1] = {value}", 'T.evaluate(T.call_extern("f", {value}, dtype="int32"))')


def test_a_pointer_that_is_passed_on() -> None:
    sch = tir.Schedule(parse(PASSED.format(noalias=False, dtype="int32", value="B.data, A[vi]")))
    refused(lambda: sch.parallel("i"))
    sch.split("i", [None, 4])
    assert "B.data" in sch.script()
    both = parse(PASSED.format(noalias=False, dtype="int32", value="A.data, B.data"))
    refused(lambda: tir.Schedule(both), "may overlap", "T.address_of(B[…])")
    addresses = PASSED.format(noalias=False, dtype="int32", value="T.address_of(A[0]), T.address_of(B[0])")
    tir.Schedule(parse(addresses)).split("i", [None, 4])


def test_what_a_schedule_shows_is_one_program() -> None:
    sch = shift()
    block = sch.get("B")
    assert block.reads[0].buffer is sch.func.buffers()[0] and block.writes[0].buffer is sch.func.buffers()[1]
    assert sch.get(sch["i"]) is sch.get("i") is sch.get_sref("i").stmt
    assert sch.get_sref(sch.get("i")).stmt is sch.get("i")


PIPELINE = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), O: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": NOALIAS})
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = 1
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = A[vi]
"""


@pytest.mark.parametrize("noalias", [True, False])
def test_a_pipeline_whose_stages_meet_by_two_names(noalias: bool) -> None:
    sch = tir.Schedule(parse(PIPELINE.replace("NOALIAS", str(noalias))))
    sch.annotate("i", "software_pipeline_stage", [0, 1])
    sch.annotate("i", "software_pipeline_order", [0, 1])
    if noalias:
        tir.lower(sch.mod)
        return
    with pytest.raises(tir.BuildError, match="with which it shares `A`, by the name `B`"):
        tir.lower(sch.mod)


def test_threads_by_default_are_for_loops_without_conflicts_of_names() -> None:
    x = np.zeros(17, "int32")
    tir.build(shift().mod, "cuda-sim")(x, x)
    np.testing.assert_array_equal(x, np.arange(17))
