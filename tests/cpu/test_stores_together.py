"""Vectors that are stored one after another: their values are computed first, if none depends on a store before it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((80,), "float32"), B: T.Buffer((80,), "float32")):
    T.func_attr({"tir.noalias": NOALIAS})
    for j in T.unroll(4):
        for i in T.vectorized(16):
            B[j * 16 + i + 16] = VALUE
"""


@pytest.mark.parametrize(
    ("value", "noalias", "order"),
    [
        ("A[j * 16 + i] + 1.0", "True", "llllssss"),
        ("A[j * 16 + i] + 1.0", "False", "lslslsls"),  # A and B may overlap
        ("B[j * 16 + i] + 1.0", "True", "lslslsls"),  # what the vector before stored
    ],
)
def test_values_are_computed_before_stores_that_they_do_not_depend_on(value: str, noalias: str, order: str):
    module = tir.build(parse(PROGRAM.replace("VALUE", value).replace("NOALIAS", noalias)))
    body = module.source("llvm")
    found = re.findall(r"(load|store) <16 x float>", body)
    assert "".join(kind[0] for kind in found) == order
    a, b = np.arange(80, dtype="float32"), np.zeros(80, "float32")
    module(a, b)
    step = np.arange(4, dtype="float32").repeat(16)
    np.testing.assert_array_equal(b[16:], step + 1 if value[0] == "B" else a[:64] + 1)
