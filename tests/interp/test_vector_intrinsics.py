"""What tensor intrinsics of x86 do, by the executor alone: as their descriptions say, before anything is lowered."""

from __future__ import annotations

import pytest

import tir
from tir.intrin import x86
from tir.intrin.tensor_intrin import TensorIntrin
from tir.testing import assert_same_result

DOTS = [*x86.VNNI.values(), x86.VNNI_256, x86.VNNI_INT16, x86.AVX512_DOT_16x4_INTRIN, x86.BF16_512, x86.BF16_256]
INTERLEAVES = [x86.INTERLEAVE_INT8, x86.INTERLEAVE_UINT8, x86.INTERLEAVE_BF16, x86.INTERLEAVE_INT16]
BLOCKS = {**dict.fromkeys(DOTS, "update"), **dict.fromkeys(INTERLEAVES, "move")}


@pytest.mark.parametrize("name", BLOCKS)
def test_an_intrinsic_does_what_its_description_says(name: str):
    described = TensorIntrin.get(name).desc
    sch = tir.Schedule(described)
    sch.tensorize(sch.get_loops(BLOCKS[name])[0], name)
    assert_same_result(described, sch.mod, engines=("interpreter",), rtol=1e-3)
