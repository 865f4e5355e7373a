"""Memory by several names: parameters that may overlap ("tir.noalias" is False), pointer variables."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused

import tir
from codegen.cuda.kernel import emit_kernel
from codegen.cuda.module import is_kernel
from tir.aliases import with_one_memory, with_own_memory
from tir.interp import run
from tir.interp.gpu import simulate
from tir.script import parse
from tir.transform import thread_storage_sync

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": False})
"""

BODIES = {
    "a condition that was true": """
    if A[0] > 0:
        B[0] = -5
        if A[0] > 0:
            C[1] = 7
""",
    "a choice by a condition that was true": """
    if A[0] > 0:
        B[0] = -5
        C[1] = T.if_then_else(A[0] > 0, 3, 4)
""",
    "the extent of a loop": """
    for i in range(A[0]):
        B[0] = 2
        if i < A[0]:
            C[i] = i + 1
""",
    "a condition that cuts a loop": """
    for i in range(8):
        if T.likely(i < A[0]):
            B[0] = B[0] - 1
            C[i] = 3
""",
    "a condition in a loop": """
    for i in range(8):
        if A[0] > 3:
            B[0] = i
        else:
            C[i] = 5
""",
    "a value read again": """
    x = A[0]
    B[0] = 9
    C[1] = x + A[0]
""",
    "a greatest value": """
    for i in range(8):
        C[0] = T.max(C[0], A[i])
        B[0] = T.Select(A[i] > C[0], A[i], B[0])
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("starts", [(0, 0, 0), (2, 1, 0), (3, 0, 3), (1, 0, 0)])
def test_what_is_known_of_memory_ends_at_a_store_by_another_name(body: str, starts: tuple[int, ...]) -> None:
    func = parse(HEAD + body)
    compiled = tir.build(func, "llvm")
    simplified, lowered = tir.transform.simplify(func), tir.lower(func)["main"]
    for seed in range(4):
        results = []
        for engine in (lambda *a: run(func, *a), lambda *a: run(simplified, *a), lambda *a: run(lowered, *a), compiled):
            memory = np.random.default_rng(seed).integers(1, 6, 16).astype("int32")
            engine(*(memory[s : s + 8] for s in starts))
            results.append(memory)
        for found in results[1:]:
            np.testing.assert_array_equal(found, results[0])


LOOP = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": False})
    with T.launch_thread("threadIdx.x", 1) as tx:
        for i in range(A[0]):
            B[i] = 1
"""


def test_a_kernel_reads_the_bounds_of_a_loop_once() -> None:
    (kernel,) = (f for f in tir.lower(parse(LOOP), target="cuda").functions.values() if is_kernel(f))
    assert "i_end" in emit_kernel(kernel, "main").text


KERNEL = """
@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    T.func_attr({{"tir.noalias": {noalias}}})
    with T.launch_thread("threadIdx.x", 32) as tx:
        B[tx] = tx
        {condition}
            C[tx] = A[31 - tx]
"""


@pytest.mark.parametrize("condition", ["if True:", "if A[3] > 2:", "if A[tx] > 2:"])
def test_threads_wait_before_they_read_what_others_wrote_by_another_name(condition: str) -> None:
    for noalias in (True, False):
        func = thread_storage_sync(parse(KERNEL.format(noalias=noalias, condition=condition)))
        assert ("tvm_storage_sync" in func.script()) == (not noalias)
    b, c = np.zeros((2, 32), "int32")
    simulate(func, (b, b, c))
    written = np.arange(32)
    asked = {"if True:": written >= 0, "if A[3] > 2:": written[3] > 2, "if A[tx] > 2:": written > 2}[condition]
    np.testing.assert_array_equal(c, np.where(asked, written[::-1], 0))


def test_a_condition_on_what_threads_write_by_another_name_is_not_the_same_for_all() -> None:
    text = KERNEL.format(noalias=False, condition="while A[0] > 2:")
    with pytest.raises(tir.BuildError, match='its parameters may overlap: "tir.noalias" is False'):
        thread_storage_sync(parse(text))
    assert "storage_sync" not in thread_storage_sync(parse(text.replace("False", "True"))).script()


POINTERS = """
@T.prim_func
def main(A: T.Buffer((17,), "int32")):
    p: T.handle("int32") = {value}
    q: T.handle("int32") = p
    B = T.decl_buffer((17,), "int32", data=q)
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = A[vi] + 1
"""


def test_a_variable_for_a_pointer_gives_no_other_memory() -> None:
    func = parse(POINTERS.format(value="A.data"))
    sch = tir.Schedule(func)
    refused(lambda: sch.parallel("i"), "`A` and `B` may be the same memory")
    sch.split("i", [None, 4])
    results = []
    for program in (func, sch.mod["main"]):
        memory = np.zeros(17, "int32")
        run(program, memory)
        results.append(memory)
    np.testing.assert_array_equal(*results)


RACE = """
@T.prim_func
def main(A: T.Buffer((32,), "int32")):
    p: T.handle("int32") = {value}
    B = T.decl_buffer((17,), "int32", data=p)
    for i in T.parallel(8):
        {store}
"""


@pytest.mark.parametrize("value", ["A.data", "T.address_of(A[2])"])
@pytest.mark.parametrize("store", ["B[i + 1] = A[i]", "A[i + 1] = B[i]"])
def test_the_executor_sees_races_through_a_variable_for_a_pointer(value: str, store: str) -> None:
    with pytest.raises(tir.RunError, match="race"):
        run(parse(RACE.format(value=value, store=store)), np.zeros(32, "int32"))


@pytest.mark.parametrize(("value", "read"), [("A.data", "i * 2 + 1"), ("T.address_of(A[9])", "i * 2")])
def test_elements_apart_behind_a_variable_for_a_pointer_are_no_race(value: str, read: str) -> None:
    run(parse(RACE.format(value=value, store=f"B[i * 2] = A[{read}]")), np.zeros(32, "int32"))


def test_what_is_written_behind_a_variable_for_a_pointer_is_initialized() -> None:
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    D = T.alloc_buffer((8,), "int32")
    p: T.handle("int32") = D.data
    B = T.decl_buffer((8,), "int32", data=p)
    for i in range(8):
        B[i] = i
    for i in range(8):
        A[i] = D[i]
""")
    memory = np.zeros(8, "int32")
    run(func, memory)
    np.testing.assert_array_equal(memory, np.arange(8))


def test_an_address_is_memory_that_steps_do_not_know() -> None:
    refused(lambda: tir.Schedule(parse(POINTERS.format(value="T.address_of(A[4])"))), "`p`", "T.match_buffer")
    tir.Schedule(parse(POINTERS.format(value='T.call_extern("handle", "malloc", 68)'))).parallel("i")


# ---------------------------------------------------------------- what a schedule knows


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
