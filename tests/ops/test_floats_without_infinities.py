"""Operators on floats that have no infinities, or fewer bits than a byte."""

from __future__ import annotations

import pytest

import tir
from tir.ops.cases import arg, case
from tir.ops.check import Judged
from tir.ops.registry import find

CALLS = {
    "max": {"axis": 1},
    "min": {"axis": 0},
    "argmax": {"axis": 1},
    "argmin": {"axis": None},
    "sort": {},
    "topk": {"k": 3},
    "nn.global_pool": {"pool_type": "max"},
}


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float6_e2m3fn", "float4_e2m1fn"])
@pytest.mark.parametrize("name", CALLS)
def test_what_begins_with_the_least_or_greatest_number(name, dtype):
    shape = (2, 1, 3, 4) if name == "nn.global_pool" else (3, 9)
    judged = Judged(find(name), case(arg(shape, dtype), **CALLS[name]))
    judged(tir.build(judged.func, "llvm")["main"])
