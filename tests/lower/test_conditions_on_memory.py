"""What a condition says of memory holds until the memory is written."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result
from tir.testing.oracle import assert_roundtrip

HEAD = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((40,), "int32")):
"""
CHANGED = {
    "an if": """
    if A[0] > 0:
        A[0] = -1
        if A[0] > 0:
            B[0] = 1""",
    "an else": """
    if A[0] > 1:
        B[1] = 2
    else:
        A[0] = 5
        if A[0] > 1:
            B[0] = 1""",
    "a part of a condition": """
    for i in range(4):
        if i < 2 and A[0] > i:
            A[0] = 0
            if A[0] > i:
                B[i] = 1""",
    "a number of iterations": """
    for i in range(A[0]):
        A[0] = 0
        if i < A[0]:
            B[0] = 1""",
    "the start of a loop": """
    for i in range(A[1], A[1] + 2):
        A[1] = 3
        if i >= A[1]:
            B[0] = 1""",
    "a variable": """
    x: T.int32 = A[0]
    A[0] = 7
    if x == A[0]:
        B[0] = 1""",
    "a condition with a name": """
    c: T.bool = A[0] > 0
    A[0] = -1
    if c:
        if A[0] > 0:
            B[0] = 1""",
    "an assertion": """
    assert A[0] > -9, "small"
    A[0] = -9
    if A[0] > -9:
        B[0] = 1""",
    "a predicate": """
    with T.block("B"):
        T.where(A[0] > 0)
        T.reads(A[0:4])
        T.writes(A[0:4], B[0:4])
        A[0] = -1
        if A[0] > 0:
            B[0] = 1""",
    "a guard that a loop would be cut at": """
    for i in range(40):
        if T.likely(i < A[0] * 3):
            B[i] = 1
            A[0] = A[0] - 1""",
    "a guard around a vector loop": """
    for i in range(10):
        if i < A[0]:
            for j in T.vectorized(4):
                B[i * 4 + j] = 1
            A[0] = A[0] - 1""",
    "a view": """
    with T.block("B"):
        T.reads(A[0:4])
        T.writes(A[0:4], B[0:4])
        V = T.match_buffer(A[0:4], (4,), "int32")
        if V[0] > 0:
            A[0] = -1
            if V[0] > 0:
                B[0] = 1""",
    "what a view shows": """
    with T.block("B"):
        T.reads(A[0:4])
        T.writes(A[0:4], B[0:4])
        V = T.match_buffer(A[0:4], (4,), "int32")
        if A[0] > 0:
            V[0] = -1
            if A[0] > 0:
                B[0] = 1""",
    "another iteration": """
    for i in range(4):
        if A[0] > 0:
            for j in range(3):
                if A[0] > 0:
                    B[i * 4 + j] = 1
                A[0] = A[0] - 1""",
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_condition_is_forgotten_when_memory_changes(name):
    func = parse(HEAD + CHANGED[name])
    stages = [tir.transform.simplify(func), tir.lower(func)]
    assert_roundtrip(stages[0])
    for first in (-1, 0, 1, 3, 5):
        inputs = [np.array([first, 2, first, 1], "int32"), np.zeros(40, "int32")]
        for stage in stages:
            assert_same_result(func, stage, inputs, engines=["interpreter"])
        assert_same_result(func, func, inputs, engines=["llvm"])


def test_it_is_used_where_memory_stays():
    func = parse(
        HEAD
        + """
    for i in range(4):
        if A[i] > 0 and i < A[0]:
            B[i] = 1
            if A[i] > 0:
                if i <= A[0]:
                    B[i + 4] = 1"""
    )
    assert str(tir.transform.simplify(func)).count("if ") == 1
