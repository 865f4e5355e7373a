"""What a block declares that it accesses, against what its body does: bodies are asked where they say."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule
from tir.schedule import Trace
from tir.schedule.trace_text import apply_text

WINDOW = """
@T.prim_func
def main(B: T.Buffer((64,), "float32")):
    A = T.alloc_buffer((72,), "float32")
    for i in range(72):
        with T.block("A"):
            v = T.axis.spatial(72, i)
            A[v] = T.Cast("float32", v)
    for i in range(64):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            T.reads(A[READS])
            T.writes(B[WRITES])
            B[v] = A[v] + A[v + 3]
"""
STEPS = {
    "cache_read": lambda s: s.cache_read("B", 0, "local"),
    "cache_read below": lambda s: s.compute_at(s.cache_read("B", 0, "local"), "B.i"),
    "cache_write": lambda s: s.cache_write("B", 0, "local"),
    "compute_at": lambda s: s.compute_at("A", s.split("B.i", [None, 8])[0]),
    "reverse_compute_at": lambda s: s.reverse_compute_at("B", "A.i"),
    "read_at": lambda s: s.read_at(s.split("B.i", [None, 8])[0], "B", 0, "local"),
    "write_at": lambda s: s.write_at(s.split("B.i", [None, 8])[0], "B", 0, "local"),
    "stage": lambda s: s.stage("B", "A", s.split("B.i", [None, 8])[0]),
    "reindex": lambda s: s.reindex("B", "B"),
    "blockize": lambda s: s.blockize(s.split("B.i", [None, 8])[1]),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("reads,writes", [("v", "v"), ("0:2", "0:1"), ("0:72", "0:64")])
def test_the_body_is_asked(step, reads, writes):
    func = schedule(WINDOW.replace("READS", reads).replace("WRITES", writes)).mod
    sch = tir.Schedule(func)
    STEPS[step](sch)
    got = np.zeros(64, "float32")
    tir.interp.run(sch.mod["main"], got)
    np.testing.assert_array_equal(got, 2 * np.arange(64, dtype="float32") + 3)


def test_the_body_of_a_nested_block_is_asked():
    text = WINDOW.replace("READS", "v").replace("WRITES", "v").replace("for i in range(64)", "for o, i in T.grid(8, 8)")
    sch = schedule(text.replace("spatial(64, i)", "spatial(64, o * 8 + i)"))
    sch.blockize("B.i")
    sch.cache_read("B_o", "A", "local")
    sch.compute_at("A_local", "B_o.o")
    got = np.zeros(64, "float32")
    tir.interp.run(sch.mod["main"], got)
    np.testing.assert_array_equal(got, 2 * np.arange(64, dtype="float32") + 3)


ROUNDED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32")):
    Y = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.block("Y"):
            v = T.axis.spatial(64, i)
            Y[v] = A[v] * T.float32(2)
    for i in range(32):
        with T.block("B"):
            v = T.axis.spatial(32, i)
            T.reads(Y[0:64])
            T.writes(B[v])
            B[v] = Y[T.Cast("int32", T.floor(T.Cast("float32", v * 2) + T.float32(0.5)))]
"""


@pytest.mark.parametrize("step", ["compute_at", "compute_at below", "reverse_compute_at", "cache_read", "stage"])
def test_a_stated_region_is_believed(step):
    sch = schedule(ROUNDED)
    sch.annotate_buffer_access("B", 0, "read", lambda v: [(v * 2, v * 2 + 2)])
    if step == "compute_at":
        sch.compute_at("Y", sch.split("B.i", [None, 8])[0])
    elif step == "compute_at below":
        sch.compute_at("Y", "B.i")
    elif step == "reverse_compute_at":
        sch.reverse_compute_at("B", sch.split("Y.i", [None, 8])[0])
    elif step == "cache_read":
        sch.compute_at(sch.cache_read("B", 0, "local"), "B.i")
    else:
        sch.stage("B", "Y", sch.split("B.i", [None, 8])[0])
    same(sch)


def test_a_region_that_is_not_stated_is_not():
    refused(lambda: schedule(ROUNDED).compute_at("Y", "B.i"), "not affine")


def test_a_stated_region_of_affine_indices_is_not_needed():
    sch = schedule(WINDOW.replace("READS", "v").replace("WRITES", "v"))
    sch.annotate_buffer_access("B", 0, "read", lambda v: [(v, v + 1)])
    refused(lambda: sch.compute_at("A", "B.i"), "reads A[3]")


@pytest.mark.parametrize("place", ["N.data", "T.address_of(N[0])"])
def test_a_call_makes_no_stores_of_a_block_certain(place):
    sch = schedule(f"""
@T.prim_func
def main(S: T.Buffer((2,), "int32"), N: T.Buffer((1,), "int32")):
    for j in range(2):
        with T.block("H"):
            T.writes(S[0:2])
            S[T.atomic_add({place}, 1, dtype="int32")] = 1
""")
    refused(lambda: sch.write_at("j", "H", 0, "local"), "it is not known which elements `H` writes")


def test_declared_ranges_are_saved_with_the_trace():
    sch = schedule(WINDOW.replace("READS", "v:v + 4").replace("WRITES", "v"))
    sch.annotate_buffer_access("B", 0, "read", lambda v: [(v // 2 * 2, v + 5)])
    sch.annotate_buffer_access("B", 0, "write", lambda v: [v])
    again = Trace.from_json(json.dumps(sch.trace.as_json()))
    assert again.as_python() == sch.trace.as_python()
    tir.assert_structural_equal(again.replay(sch.history[0].mod).mod, sch.mod)


def test_the_text_of_a_trace_declares_numbers_of_the_same_types():
    """The sizes of the axes are of two types, and the given ends of others."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((T.int64(4), 5), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi, vi + 1]
""")
    sch.annotate_buffer_access("B", 0, "read", lambda i: [(tir.const(0, "int32"), 4), (0, tir.const(5, "int64"))])
    assert [axis.extent.dtype for axis in sch.get("B").reads[0].region] == ["int64", "int32"]
    again = tir.Schedule(sch.history[0].mod)
    apply_text(str(sch.trace), again)
    tir.assert_structural_equal(again.mod, sch.mod)


def test_a_consumer_that_declares_all_rows_of_one_buffer_does_not_follow_the_other():
    """It reads `P[1 - vi]`: where row 0 of `P` and `N` is made, row 1 of `P` is not. Its declared rows of `P` limit no iterator."""
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), N: T.Buffer((2,), "int32"), O: T.Buffer((2,), "int32")):
    P = T.alloc_buffer((2,), "int32")
    for i in range(2):
        with T.block("both"):
            vi = T.axis.spatial(2, i)
            P[vi] = A[vi] + 1
            N[vi] = P[vi] * 2
    for i in range(2):
        with T.block("join"):
            vi = T.axis.spatial(2, i)
            O[vi] = P[1 - vi] * 2 - N[vi]
""")
    sch.annotate_buffer_access("join", 0, "read", lambda i: [(0, 2)])
    refused(lambda: sch.reverse_compute_at("join", sch.get_loops("both")[0]), "would read an element not yet written")
