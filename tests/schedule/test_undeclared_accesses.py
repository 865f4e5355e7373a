"""Blocks that do not declare what they access: steps see it all the same."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, schedule

import tir
from tir.interp import run
from tir.script import parse


def test_a_copy_is_taken_after_a_write_that_is_not_declared():
    func = parse("""
@T.prim_func
def main(P: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("U"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes()
            P[vi] = 1
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            T.reads()
            D[vi] = P[vi] + 1
""")
    sch = tir.Schedule(func)
    sch.cache_read("D", 0, "local")
    result = np.zeros(8, "int32")
    tir.interp.run(sch.mod, np.zeros(8, "int32"), result)
    assert result.tolist() == [2] * 8


EXTERN = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            {declared}
            T.evaluate(T.call_extern("void", "g", B.data, vi))
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi] + 1
"""
STEPS = {
    "compute_at": lambda s: s.compute_at("B", "D.i"),
    "reverse_compute_at": lambda s: s.reverse_compute_at("D", "B.i"),
    "compute_inline": lambda s: s.compute_inline("B"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("D"),
    "cache_read": lambda s: s.cache_read("X", 0, "local"),
    "cache_read_by_all": lambda s: s.cache_read("D", 0, "local", consumer_blocks=["X", "D"]),
    "parallel": lambda s: s.parallel("X.i"),
    "transform_layout": lambda s: s.transform_layout("B", "B", lambda i: (7 - i,)),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_pointer_that_is_passed_on_may_access_the_entire_buffer(name):
    sch = tir.Schedule(parse(EXTERN.format(declared="T.reads()\n            T.writes()")))
    assert "T.writes(B[0:8])" in sch.mod.script()
    with pytest.raises(tir.ScheduleError) as caught:
        STEPS[name](sch)
    assert "a fault inside" not in str(caught.value)


def test_a_copy_is_taken_after_a_pointer_was_passed_on():
    sch = tir.Schedule(parse(EXTERN.format(declared="T.reads()\n            T.writes()")))
    sch.cache_read("D", 0, "local")
    text = sch.script()
    assert text.index('"X"') < text.index('"B_local"') < text.index('"D"') and "B.data" in text


def test_what_is_declared_of_a_pointer_stays():
    func = parse(EXTERN.format(declared="T.reads(B[vi])\n            T.writes()"))
    assert tir.Schedule(func).mod["main"] is func


def test_a_buffer_that_is_declared_and_not_written_has_no_copy():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi])
            T.writes(B[0:4], C[vi])
            C[vi] = A[vi]
""")
    with pytest.raises(tir.ScheduleError, match="declares that it writes B, and writes nothing of it"):
        tir.Schedule(func).cache_write("C", 0, "local")


def test_a_looked_up_index_is_bounded_by_what_was_read():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), S: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] * 2
    for o in range(3):
        with T.block("tile"):
            vo = T.axis.spatial(3, o)
            T.reads(B[0])
            T.writes(S[vo])
            for k in range(2):
                with T.block("S"):
                    vk = T.axis.reduce(2, k)
                    T.reads(B[0])
                    T.writes(S[vo])
                    with T.init():
                        S[vo] = 0
                    S[vo] = S[vo] + B[vo * 2 + vk]
""")
    sch = tir.Schedule(func)
    sch.cache_index("S", "global", 1)
    sch.cache_read("tile", "B", "local")
    result = np.zeros(3, "int32")
    tir.interp.run(sch.mod, np.arange(6, dtype="int32"), result)
    assert result.tolist() == [2, 10, 18]


CARRIED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((9,), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi + 1] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""
SUMS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4, 8), "float32")):
    for i in range(4):
        for k in range(8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk]
            USE
"""
USE = """with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = B[vi]"""
HIDDEN = [("B", "write", [0]), ("C", "read", [0])]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    "step", [lambda s: s.parallel("i"), lambda s: s.vectorize("i"), lambda s: s.bind("i", "threadIdx.x")]
)
def test_iterations_are_judged_by_statements_not_by_what_is_declared(step, hidden):
    sch = schedule(CARRIED)
    sch.unsafe_hide_buffer_access(*hidden)
    refused(lambda: step(sch), "two of its iterations touch the same element")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_sum_that_is_used_before_threads_combine_it(hidden):
    sch = schedule(SUMS.replace("USE", USE))
    sch.unsafe_hide_buffer_access(*hidden)
    refused(lambda: sch.bind("k", "threadIdx.x"), "`C` uses B inside loop `k`")


def test_a_sum_across_threads_is_known_by_its_stores():
    """`parallel` refuses a loop that reduces and `bind` takes it, whatever is declared; the executor agrees."""
    sch = schedule(SUMS.replace("USE", "T.evaluate(0)"))
    sch.unsafe_hide_buffer_access("B", "write", [0])
    refused(lambda: sch.parallel("k"), "touch the same element")
    sch.bind("k", "threadIdx.x")
    sums = np.zeros(4, "float32")
    run(sch.mod["main"], np.ones((4, 8), "float32"), sums, np.zeros((4, 8), "float32"))
    assert (sums == 8).all()


ROWS = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def row(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] + T.float32(1)

    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), D: T.Buffer((4, 16), "float32")):
        C = T.alloc_buffer((4, 16), "float32")
        for r in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, r)
                {declared}
                Module.row(T.address_of(A[v, 0]), T.address_of(C[v, 0]))
        for r, j in T.grid(4, 16):
            with T.block("D"):
                v, w = T.axis.remap("SS", [r, j])
                D[v, w] = C[v, w] * T.float32(2)
"""
BY_ROW = "T.reads(A[v, 0:16]); T.writes(C[v, 0:16])"


CALLED = {
    "parallel": lambda s: s.parallel("C.r"),
    "bind": lambda s: s.bind("C.r", "blockIdx.x"),
    "compute_at": lambda s: s.compute_at("C", "D.r"),
    "reverse_compute_at": lambda s: s.reverse_compute_at("D", "C.r"),
}


@pytest.mark.parametrize("name", CALLED)
def test_calls_access_what_their_block_declares(name):
    sch = schedule(ROWS.format(declared=BY_ROW))
    CALLED[name](sch)
    if name != "bind":
        a, d = np.arange(64, dtype="float32").reshape(4, 16), np.zeros((4, 16), "float32")
        tir.build(sch.mod, "llvm")["main"](a, d)
        np.testing.assert_array_equal(d, (a + 1) * 2)


@pytest.mark.parametrize(
    "declared", ["pass", "T.reads(A[v, 0:16])", "T.reads(A[v, 0], C[v, 0]); T.writes()"]
)  # TVM infers the last
def test_without_declared_writes_calls_access_anything(declared):
    for steps in CALLED.values():
        refused(lambda: steps(schedule(ROWS.format(declared=declared))))  # noqa: B023


def test_a_call_whose_regions_are_declared_is_not_repeated():
    refused(lambda: schedule(ROWS.format(declared=BY_ROW)).compute_at("C", "D.j"), "more than once", "call_global")


def test_elements_that_rows_share_are_seen():
    refused(
        lambda: schedule(ROWS.format(declared="T.reads(A[v, 0:16]); T.writes(C[v // 2, 0:16])")).parallel("C.r"), "C["
    )


def test_atomic_updates_of_two_buffers_in_a_block_are_bound_to_threads():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), H: T.Buffer((1,), "int32"), R: T.Buffer((1,), "int32")):
    for i in range(4):
        with T.block("H"):
            v = T.axis.spatial(4, i)
            T.atomic_add(T.address_of(H[0]), A[v])
            T.atomic_add(T.address_of(R[0]), A[v])
""")
    assert 'T.launch_thread("threadIdx.x", 256)' in tir.lower(func, target="cuda").script()
