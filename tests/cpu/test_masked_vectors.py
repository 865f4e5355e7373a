"""Conditions that differ between the lanes of a vectorized loop: masked loads and stores, in the executor and compiled."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.expr import Call, Ramp
from tir.script import parse
from tir.script import tir as T
from tir.stmt import IfThenElse
from tir.testing import assert_roundtrip, assert_same_result
from tir.visit import walk


@T.prim_func
def guarded_store(A: T.Buffer((3, 16), "float32"), C: T.Buffer((3, 16), "float32")):
    for i in range(3):
        for j in T.vectorized(16):
            if (i * 5 + j) % 3 == 0:
                C[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def both_sides(A: T.Buffer((16,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((32,), "float32")):
    for j in T.vectorized(16):
        if A[j] > T.float32(0):
            C[j] = A[j] + T.cast(B[j // 4], "float32")
        else:
            C[31 - j] = T.float32(-1)


@T.prim_func
def guarded_load(A: T.Buffer((13,), "float32"), C: T.Buffer((16,), "float32")):
    for j in T.vectorized(16):
        C[j] = T.if_then_else(j < 13, A[j], T.float32(7))


@T.prim_func
def nested(A: T.Buffer((9,), "int32"), C: T.Buffer((16,), "int32")):
    for j in T.vectorized(16):
        if j % 2 == 0:
            if j < 9:
                C[j] = A[j] + T.if_then_else(j > 3, A[j - 4], 100) * j


PROGRAMS = [guarded_store, both_sides, guarded_load, nested]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.attrs["global_symbol"])
def test_masked_programs_agree(program: tir.PrimFunc):
    """The scalar program, its vector form in the executor, and compiled code: the same results, nothing out of bounds."""
    lowered = tir.lower(program)
    func = next(iter(lowered.functions.values()))
    masked = [n for n in walk(func.body) if isinstance(n, IfThenElse) and n.condition.dtype.lanes > 1]
    masked += [n for n in walk(func.body) if isinstance(n, Call) and n.op == "if_then_else" and n.dtype.lanes > 1]
    assert masked, func.script()
    assert_roundtrip(lowered)
    assert_same_result(program, lowered, engines=["interpreter"])
    assert_same_result(program, program, engines=["interpreter", "llvm"])


def test_the_executor_faults_only_in_active_lanes():
    """A vector load beyond the buffer is a fault where its lane is on, and none where it is off."""

    @T.prim_func
    def beyond(A: T.Buffer((8,), "int32"), C: T.Buffer((16,), "int32"), n: T.int32):
        for j in T.vectorized(16):
            if j < n:
                C[j] = A[j]

    lowered = tir.lower(beyond)
    a, c = np.arange(8, dtype=np.int32), np.zeros(16, np.int32)
    run = tir.build(lowered, target="interpreter")
    run(a, c, 8)
    assert c.tolist() == [*range(8), *[0] * 8]
    run(a, c, 0)
    with pytest.raises(tir.RunError, match="A"):
        run(a, c, 9)


def test_masked_code_has_no_scalar_loop():
    lowered = tir.lower(guarded_load)
    module = tir.build(guarded_load)
    assert any(isinstance(n, Ramp) for n in walk(lowered["main"].body))
    assert "masked.load" in module.source("llvm")


@T.prim_func
def read_anyway(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for j in T.vectorized(16):
        first: T.float32 = T.Select(A[j] > B[j] or A[j] == B[j] and B[j] > T.float32(0), A[j], B[j])
        C[j] = T.Select(first > B[j] and A[j] < T.float32(5), first, B[j])


@T.prim_func
def read_elsewhere(A: T.Buffer((9,), "float32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "float32")):
    for j in T.vectorized(16):
        C[j] = T.Select(j < 9 and A[j] > T.float32(0), T.float32(1), T.if_then_else(j > 7, A[j - 7], A[j + 1]))


@T.prim_func
def moved_between(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "int32"), C: T.Buffer((2,), "float32")):
    B[0] = 1
    first: T.float32 = A[B[0]]
    B[0] = 100
    C[0] = first
    C[1] = T.if_then_else(first > T.float32(9), A[B[0]], first)


def test_what_a_statement_reads_anyway_needs_no_mask():
    """The conditions of a selection read what is selected: neither masks nor branches, or reductions to positions are slow."""
    code = tir.build(read_anyway).source("llvm")
    assert "masked" not in code and "phi <16" not in code
    assert_same_result(read_anyway, read_anyway, engines=["interpreter", "llvm"])


def test_an_element_of_its_own_is_read_under_no_condition():
    """A number that a row was given, such as its mean, is in a register: no lane needs to be asked for."""

    text = """
@T.prim_func
def of_rows(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), n: T.int32, k: T.int32):
    mean = T.alloc_buffer((2,), "float32")
    mean[0] = A[0]
    mean[1] = A[1]
    for j in T.vectorized(16):
        if j < n:
            C[j] = A[j] - mean[{}]
"""
    for place, asks in (("1", False), ("k", True)):
        func = tir.script.parse(text.format(place))
        assert ("reduce.or" in tir.build(func).source("llvm")) is asks
        a, c = np.arange(16, dtype="float32"), np.zeros(16, "float32")
        tir.build(func)(a, c, 5, 1)
        np.testing.assert_array_equal(c, [*(a[:5] - 1), *[0] * 11])


@pytest.mark.parametrize("program", [read_elsewhere, moved_between], ids=lambda f: f.attrs["global_symbol"])
def test_what_only_a_condition_allows_is_read_under_it(program):
    code = tir.build(program, "llvm -vector_width=512 -mcpu=skylake-avx512").source("llvm")
    assert "load <16 x float>, ptr %arg0" not in code  # of which there are 9, or 4
    assert_same_result(program, program, engines=["interpreter", "llvm"])


def test_a_conditional_load_in_bounds_needs_no_mask():
    """Many processors have no masked loads of bytes: each lane would be a branch."""

    @T.prim_func
    def both(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 64), "bool")
        B = T.match_buffer(b, (n, 64), "bool")
        C = T.match_buffer(c, (n, 64), "bool")
        for i in range(n):
            for j in T.vectorized(64):
                C[i, j] = A[i, j] and B[i, j]

    code = tir.build(both).source("llvm")
    assert "masked" not in code and "phi <64" not in code
    assert_same_result(both, both, engines=["interpreter", "llvm"])


def test_a_vector_that_runs_over_rows_keeps_their_layout():
    """Compaction sees whole rows where a vector runs on from one row into the next."""

    @T.prim_func
    def rows(A: T.Buffer((2, 64), "int32"), C: T.Buffer((2, 64), "int32")):
        for i in range(2):
            with T.block("copy"):
                vi = T.axis.spatial(2, i)
                kept = T.alloc_buffer((8, 16, 4), "int32")
                kept[5, 0, T.ramp(0, 1, 32)] = A[vi, T.ramp(0, 1, 32)]
                kept[5, 8, T.ramp(0, 1, 32)] = A[vi, T.ramp(32, 1, 32)]
                C[vi, T.ramp(0, 1, 64)] = kept[5, 0, T.ramp(0, 1, 64)]

    small = tir.lower(rows, upto="compact_buffer_allocation")["main"]
    shapes = {
        b.name: tuple(s.value for s in b.shape) for n in walk(small.body) for b in getattr(n, "alloc_buffers", ())
    }
    assert shapes["kept"] == (1, 16, 4)
    a, c = np.arange(128, dtype=np.int32).reshape(2, 64), np.zeros((2, 64), np.int32)
    tir.build(rows)(a, c)
    np.testing.assert_array_equal(a, c)


def test_a_guard_of_two_conditions_is_decided_one_at_a_time():
    """Loop partition drops the part of a guard that holds, so that full tiles have none left."""

    @T.prim_func
    def tiles(A: T.Buffer((9, 33), "int32"), C: T.Buffer((9, 33), "int32")):
        for io, jo, ii in T.grid(5, 2, 2):
            for ji in T.vectorized(32):
                if io * 2 + ii < 9 and jo * 32 + ji < 33:
                    C[io * 2 + ii, jo * 32 + ji] = A[io * 2 + ii, jo * 32 + ji]

    cut = tir.lower(tiles, upto="loop_partition")["main"]
    assert not any(isinstance(n, IfThenElse) for n in walk(cut.body)), cut.script()
    assert_same_result(tiles, tir.IRModule.of(cut), engines=["interpreter"])


@T.prim_func
def costly_side(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(4):
        for j in T.vectorized(16):
            C[i * 16 + j] = T.if_then_else(
                A[i * 16 + j] > T.float32(0), A[i * 16 + j], T.expm1(A[i * 16 + j]) + T.exp(A[63 - i * 16 - j])
            )


def test_a_costly_function_is_not_computed_for_no_lane():
    module = tir.build(costly_side)
    code = module.source("llvm")
    assert "vector.reduce.or" in code and "masked" not in code
    assert_same_result(costly_side, costly_side, engines=["interpreter", "llvm"])
    for a in (np.linspace(-1, -3, 64), np.linspace(1, 3, 64), np.linspace(-1, 1, 64)):
        given, c = a.astype("float32"), np.zeros(64, "float32")
        module(given, c)
        np.testing.assert_allclose(c, np.where(given > 0, given, np.expm1(given) + np.exp(given[::-1])), rtol=1e-5)


OWN = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32, B: T.Buffer((SIZE,), "float32")):
    data = T.allocate([SIZE], "TYPE", "global")
    sums = T.decl_buffer((SIZE,), "TYPE", data=data)
    for i in range(SIZE):
        sums[i] = T.cast(i, "TYPE")
    for k in range(4):
        for j in T.vectorized(16):
            if FIRST + j < n:
                sums[FIRST + j] = sums[FIRST + j] + T.cast(A[k * 16 + j], "TYPE")
    for i in range(SIZE):
        B[i] = T.cast(sums[i], "float32")
"""


@pytest.mark.parametrize(
    ("size", "first", "dtype", "whole"),
    [
        (16, 0, "float32", True),
        (40, 24, "float32", True),
        (40, 24, "int32", True),
        (39, 24, "float32", False),  # the last lane is beyond the allocation
        (4000, 16, "float32", True),  # the most that is on the stack: a store of so many zeros took LLVM 40 s
        (5000, 16, "float32", False),  # on the heap
    ],
)
def test_memory_of_this_thread_is_updated_as_whole_vectors(size: int, first: int, dtype: str, whole: bool):
    text = OWN.replace("SIZE", str(size)).replace("FIRST", str(first)).replace("TYPE", dtype)
    module = tir.build(tir.script.parse(text), "llvm -vector_width=512 -mcpu=skylake-avx512")
    assert ("llvm.masked.store" not in module.source("llvm")) == whole
    assert "zeroinitializer, ptr" not in module.source("llvm")  # memory is set to zeros by `llvm.memset`
    a = np.arange(64).astype("float32")
    for n in (0, first + 1, first + 9, size):
        b = np.zeros(size, "float32")
        tir.build(tir.script.parse(text))(a, n, b)
        wanted = np.arange(size).astype("float32")
        count = min(max(n - first, 0), 16, size - first)
        wanted[first : first + count] += a.reshape(4, 16).sum(0)[:count]
        np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize(("least", "whole"), [("n < 32", True), ("n < 34", False)])
def test_rows_of_this_thread_whose_place_moves_are_stored_as_whole_vectors(least: str, whole: bool):
    """Where all places that a condition and the loops leave lie within the allocation."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((40,), "float32"), n: T.int32, B: T.Buffer((40,), "float32")):
    data = T.allocate([32], "float32", "global")
    row = T.decl_buffer((32,), "float32", data=data)
    if {least}:
        for k in range((n + 7) // 8):
            for j in T.vectorized(8):
                if k * 8 + j < n:
                    row[k * 8 + j] = A[k * 8 + j] * T.float32(2)
        for i in range(n):
            B[i] = row[i]
"""
    module = tir.build(tir.script.parse(text), "llvm")
    assert (module.source("llvm").count("llvm.masked.store") == 0) == whole
    a = np.arange(40).astype("float32")
    for n in (0, 1, 8, 13, 31):
        b = np.full(40, -1, "float32")
        module(a, n, b)
        np.testing.assert_array_equal(b, [2 * i if i < n else -1 for i in range(40)])


def test_memory_that_threads_share_keeps_its_masks():
    """Another thread may store the other lanes at the same time."""
    text = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32, B: T.Buffer((16,), "float32")):
    data = T.allocate([16], "float32", "global")
    shared = T.decl_buffer((16,), "float32", data=data)
    for i in range(16):
        shared[i] = T.float32(0)
    for k in T.parallel(4):
        for j in T.vectorized(16):
            if k * 4 <= j and j < k * 4 + 4 and j < n:
                shared[j] = A[k * 16 + j]
    for i in range(16):
        B[i] = shared[i]
"""
    assert "llvm.masked.store" in tir.build(tir.script.parse(text), "llvm").source("llvm")


@pytest.mark.parametrize(("dtype", "lanes", "masked"), [
    ("float32", 14, True), ("float32", 6, True), ("int32", 3, True), ("float64", 7, True),
    ("float32", 16, False), ("float32", 2, False), ("float32", 20, False), ("float64", 14, False), ("int8", 14, False),
])  # fmt: skip
def test_a_part_of_a_register_is_loaded_and_stored_by_one_instruction_with_a_mask(dtype: str, lanes: int, masked: bool):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer(({lanes + 1},), "{dtype}"), B: T.Buffer(({lanes},), "{dtype}")):
    for i in T.vectorized({lanes}):
        B[i] = A[i + 1]
""")
    kinds = tir.build(func, target="llvm -mcpu=skylake-avx512 -mattr=+avx512f,+avx512vl").source("llvm")
    assert [f"llvm.masked.{kind}" in kinds for kind in ("load", "store")] == [masked, masked]
    assert "llvm.masked" not in tir.build(func, target="llvm -mcpu=haswell").source("llvm")
    assert_same_result(func, func, engines=["interpreter", "llvm"])


def test_lanes_without_an_element_divide_zero():
    """Not what memory of its own has there: numbers that are almost zero take a hundred cycles."""
    func = parse("""
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.Buffer((1,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    H = T.alloc_buffer((64,), "float32")
    for i in range(8):
        for j in T.vectorized(8):
            if i * 8 + j < n:
                H[i * 8 + j] = A[i * 8 + j] + 1.0
    for i in range(8):
        for j in T.vectorized(8):
            if i * 8 + j < n:
                B[i * 8 + j] = H[i * 8 + j] / c[0]
""")
    text = tir.build(func, "llvm -mcpu=x86-64-v4").get_source("ll")
    whole, partial = re.findall(r"= fdiv .*<8 x float> (%[^,]+),", text)
    assert [f"{part} = select" in text for part in (whole, partial)] == [False, True], text
