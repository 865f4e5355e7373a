"""Steps on programs in which two buffers are declared over one pointer."""

from __future__ import annotations

import numpy as np
import pytest
from prim_checks import refused, same, schedule

import tir

SHARED = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((32,), "float32")
    R = T.decl_buffer((4, 8), "float32", data=B.data)
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[vi // 8, vi % 8] * T.float32(2)
    for i, j in T.grid(4, 8):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = R[vi, vj] + T.float32(1)
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj * 4 + vi]
"""


@pytest.mark.parametrize(
    ("block", "buffer", "kept"),
    [("B", "B", "R uses the memory of B as R"), ("R", "R", "uses the memory of R as B")],
)
def test_a_copy_to_write_back_is_refused(block, buffer, kept):
    error = refused(lambda: schedule(SHARED).cache_write(block, buffer, "local"), "block `")
    assert kept in str(error).replace("`", "")


def test_a_copy_of_what_another_name_has_written_is_refused():
    for step in (
        lambda s: s.cache_read("C", "B", "local"),
        lambda s: s.cache_read("R", "R", "local"),
        lambda s: s.stage("C", "B", "C.i"),
    ):
        refused(lambda step=step: step(schedule(SHARED)), "uses the memory of")


def test_a_value_is_not_recomputed_where_another_name_has_changed_what_it_reads():
    text = """
@T.prim_func
def main(C: T.Buffer((8,), "int32")):
    A = T.alloc_buffer((8,), "int32")
    R = T.decl_buffer((2, 4), "int32", data=A.data)
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = vi
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2
    for i, j in T.grid(2, 4):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = -1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""
    refused(lambda: schedule(text).compute_inline("B"))
    refused(lambda: schedule(text).compute_at("B", "C.i"))
    refused(lambda: schedule(text).reverse_compute_at("C", "A.i"))


@pytest.mark.parametrize("loop", ["B.i", "R.i", "C.i"])
def test_memory_stays_outside_of_a_loop_that_uses_one_of_its_names(loop):
    sch = schedule(SHARED)
    sch.parallel(loop)
    same(sch)
    a = np.arange(32, dtype="float32").reshape(4, 8)
    c = np.zeros_like(a)
    tir.build(sch.mod, "llvm")(a, c)
    np.testing.assert_array_equal(c, (a * 2 + 1).reshape(8, 4).T)


@pytest.mark.parametrize("named", ["decl_buffer", "Buffer"])
def test_all_names_of_memory_get_its_new_type_and_scope(named):
    sch = schedule(SHARED.replace("decl_buffer", named))
    sch.unsafe_set_dtype("B", "B", "float64")
    same(sch)
    sch.set_scope("B", "B", "local")
    same(sch)
    written = [sch.get(sch.get_block(name)).writes[0].buffer for name in ("B", "R")]
    assert [(str(b.dtype), b.scope) for b in written] == [("float64", "local")] * 2
    assert written[0].data is written[1].data


def test_a_name_of_memory_is_not_set_alone():
    refused(
        lambda: schedule(SHARED).unsafe_set_dtype("R", "R", "float64"), "declared over the pointer of B", "legal: B"
    )
    refused(lambda: schedule(SHARED).set_scope("R", "R", "local"), "declared over the pointer of B")
    parameter = SHARED.replace(
        'B = T.alloc_buffer((32,), "float32")', 'B = T.decl_buffer((32,), "float32", data=C.data)'
    )
    refused(lambda: schedule(parameter).set_scope("B", "B", "local"), "declared over the pointer of C")


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.cache_write("G", "G", "local"),
        lambda s: s.cache_read("G", "F", "local"),
        lambda s: s.reindex("G", "F"),
        lambda s: s.reindex("G", "G"),
        lambda s: s.stage("G", "F", "i"),
        lambda s: s.read_at("i", "G", "F", "local"),
        lambda s: s.stage("G", "G", "j"),
    ],
)
def test_a_copy_of_a_declared_buffer_stands_where_it_is_declared(step):
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((16, 8), "float32")):
    F = T.decl_buffer((128,), "float32", data=A.data)
    G = T.decl_buffer((128,), "float32", data=C.data)
    for i in range(8):
        for j in range(16):
            with T.block("G"):
                vi, vj = T.axis.remap("SS", [i, j])
                G[vj * 8 + vi] = F[vi * 16 + vj] * T.float32(2)
""")
    step(sch)
    same(sch)


def test_rows_of_memory_are_not_moved_under_another_name():
    refused(lambda: schedule(SHARED).storage_align("B", 0, 0, 8, 0), "R names the memory of B too")
    refused(lambda: schedule(SHARED).storage_align("R", 0, 0, 8, 1), "B names the memory of R too")
    shared = SHARED.replace('(32,), "float32")', '(32,), "float32", scope="shared")')
    refused(lambda: schedule(shared).storage_swizzle("R", 0), "B names the memory of R too")


def test_a_buffer_that_leaves_takes_its_unused_names_along():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    R = T.decl_buffer((2, 4), "float32", data=B.data)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] + B[vi + 2]
"""
    inlined = schedule(text)
    inlined.compute_inline("B")
    assert "R = " not in inlined.script()
    same(inlined)
    rolled = schedule(text)
    rolled.compute_at("B", "C.i")
    rolled.rolling_buffer("B", 0)
    assert "R = " not in rolled.script()
    same(rolled)


def test_a_second_name_of_memory_is_no_output():
    refused(lambda: schedule(SHARED).compute_inline("R"), "R is not allocated by block `root`, and others may use")


def test_vectors_are_cast_to_the_new_type():
    sch = schedule("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[T.ramp(vi * 4, 1, 4)] = A[T.ramp(vi * 4, 1, 4)] * T.broadcast(T.float32(2), 4)
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial(2, i)
            C[T.ramp(vi * 4, 1, 4)] = B[T.ramp(vi * 4, 1, 4)]
""")
    sch.unsafe_set_dtype("B", "B", "float64")
    same(sch)
    tir.build(sch.mod, "llvm")
