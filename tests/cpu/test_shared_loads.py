"""What accesses of a block have in common: addresses that differ by a number, and loads of memory that has not changed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.script import parse


def text_of(program: str) -> str:
    return tir.build(parse(program)).source("llvm")


def test_indices_that_differ_by_a_number_are_computed_once():
    text = text_of("""
@T.prim_func
def main(A: T.Buffer((80,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(4):
        for k in T.unroll(8):
            B[i * 16 + k * 2] = A[i * 16 + k + 1] + A[i * 16 + k * 2]
""")
    assert len(re.findall("= sext i32", text)) == 1
    assert len(re.findall(r"= mul nsw i32 \S+ 16", text)) == 1


def test_what_is_loaded_twice_is_loaded_once():
    text = text_of("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(4):
        for j in T.unroll(4):
            for k in T.unroll(4):
                C[i * 16 + j * 4 + k] = A[i * 4 + k] * B[j]
""")
    assert len(re.findall("= load float", text)) == 4 + 4


NAMES = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    V = T.decl_buffer((8,), "float32", data=A.data)
    for i in range(7):
        B[i] = A[i + 1]
        STORE
        B[i] = B[i] * 10.0 + A[i + 1]
"""


@pytest.mark.parametrize("store", ["A[i + 1] = A[i] + 1.0", "V[i + 1] = A[i] + 1.0", "V[7 - i] = B[i] + 1.0"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_what_is_stored_by_any_name_is_loaded_again(store: str, lanes: int):
    program = NAMES.replace("STORE", store)
    if lanes > 1:
        program = program.replace("range(7)", "T.unroll(7)")
    a = np.arange(8, dtype="float32") ** 2
    b = np.zeros(8, "float32")
    wanted_a, wanted_b = a.copy(), b.copy()
    for i in range(7):
        before = wanted_a[i + 1]
        wanted_b[i] = before
        at = 7 - i if "7 - i" in store else i + 1
        wanted_a[at] = (wanted_b if "B[i]" in store else wanted_a)[i] + 1
        wanted_b[i] = wanted_b[i] * 10 + wanted_a[i + 1]
    tir.build(parse(program))(a, b)
    np.testing.assert_array_equal(a, wanted_a)
    np.testing.assert_array_equal(b, wanted_b)


def test_arguments_that_may_overlap_are_loaded_again():
    program = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": False})
    for i in T.unroll(7):
        B[i + 1] = A[i] + 1.0
        B[i + 1] = B[i + 1] + A[i + 1]
"""
    a = np.arange(8, dtype="float32")
    wanted = a.copy()
    for i in range(7):
        wanted[i + 1] = wanted[i] + 1
        wanted[i + 1] += wanted[i + 1]
    tir.build(parse(program))(a, a)
    np.testing.assert_array_equal(a, wanted)


def test_an_index_out_of_bounds_that_is_not_taken_is_no_basis_of_others():
    program = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.if_then_else(i >= 5, A[i - 5], T.float32(0)) + T.if_then_else(i < 4, A[i + 4], T.float32(0)) + A[i]
"""
    a, b = np.arange(1, 9, dtype="float32"), np.zeros(8, "float32")
    tir.build(parse(program))(a, b)
    np.testing.assert_array_equal(b, a + np.r_[np.zeros(5), a[:3]] + np.r_[a[4:], np.zeros(4)])
