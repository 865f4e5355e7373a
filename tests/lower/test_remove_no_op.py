"""Statements without effect go, and those with one stay."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing.oracle import assert_roundtrip

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32"), n: T.int32):
    for i in range(7):
        {body}
"""
GONE = {
    "a loop that never runs": "for j in range(0):\n            A[j] = 9",
    "a loop of negative extent": "for j in range(5, 2):\n            A[j] = 9",
    "what is there already": "A[i] = A[i]",
    "what is there already, at a computed place": "A[(i * 3 + n) % 7] = A[(n + i * 3) % 7]",
    "an empty branch": "if A[i] > 3:\n            A[i] = A[i]",
    "two empty branches": "if A[i] > 3:\n            A[i] = A[i]\n        else:\n            for j in range(0):\n                B[j] = 1",
    "a loop of nothing": "for j in range(n):\n            A[j] = A[j]",
}
STAYS = {
    "another place": "A[i] = A[(i + 1) % 7]",
    "another buffer": "A[i] = B[i]",
    "a change": "A[i] = A[i] + 1",
    "an else-branch": "if A[i] > 3:\n            A[i] = A[i]\n        else:\n            B[i] = n",
    "an else-branch of a conjunction": "if A[i] > 3 and i < n:\n            for j in range(0):\n                B[j] = 1\n        else:\n            B[i] = n",
    "a place that its own store changes": "A[A[i] % 7] = A[A[i] % 7]\n        B[i] = 1",
}


def lowered(body):
    func = parse(PROGRAM.format(body=body))
    made = tir.transform.remove_no_op(func)
    assert_roundtrip(made)
    for n in (-1, 0, 4):
        got, want = ([np.arange(7, dtype="int32"), np.arange(7, 0, -1, dtype="int32"), n] for _ in range(2))
        tir.interp.run(made, *got)
        tir.interp.run(func, *want)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])
    return made.script()


@pytest.mark.parametrize("name", GONE)
def test_what_does_nothing_goes(name):
    text = lowered(GONE[name])
    assert "for" not in text.replace("from", "") and "] =" not in text


@pytest.mark.parametrize("name", STAYS)
def test_what_does_something_stays(name):
    assert "] = " in lowered(STAYS[name])


def test_an_empty_branch_leaves_its_negation():
    text = lowered(STAYS["an else-branch"])
    assert "else" not in text and "if not A[i] > 3" in text.replace("(", "").replace(")", "")


def test_a_padded_parameter_builds_for_gpus():
    """The loops that state what its padding has run in no kernel."""
    sch = tir.Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi] + 1
""")
    )
    sch.transform_layout("B", ("read", 0), lambda i: (i // 4, i % 4), pad_value=0)
    a, b = np.array([[1, 2, 3, 4], [5, 6, 7, 0]], "int32"), np.zeros(7, "int32")
    tir.build(sch.mod, "cuda-sim")(a, b)
    assert b.tolist() == [2, 3, 4, 5, 6, 7, 8]
