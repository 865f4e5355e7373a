"""Random tensor programs: what they become gives what NumPy gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from te_oracle import judge

import tir
from tests.fuzz.tensor_programs import TensorDrawing
from tir import te
from tir.testing.decisions import DrawnChoice

DTYPES = ("float32", "float64", "int32", "int8", "uint8")
SETTINGS = settings(max_examples=50, derandomize=True)


@st.composite
def programs(draw):
    """Arguments: the scalar, the inputs, and computations of which the last is among them."""
    return TensorDrawing(DrawnChoice(draw), DTYPES, exact=False).arguments()


@given(programs())
@SETTINGS
def test_random_program_parses_back_and_runs(args):
    func = te.create_prim_func(args)
    tir.assert_structural_equal(tir.script.parse(func.script()), func)
    with np.errstate(all="ignore"):
        judge(args, func, target=None)


@given(programs())
@settings(SETTINGS, max_examples=15)
def test_random_program_built(args):
    with np.errstate(all="ignore"):
        judge(args)
