"""Tensors of other libraries in host memory: read through DLPack, never copied, also of types that NumPy has not."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_tensors import Foreign

import tir
from tir.errors import RunError
from tir.script import parse

COPY = """
@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "{0}")
    B = T.match_buffer(b, (n,), "{0}")
    for i in range(n):
        B[i] = A[i]
"""
KINDS = [("bfloat16", 4, "uint16"), ("float8_e4m3fn", 10, "uint8"), ("float8_e5m2", 12, "uint8")]


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
@pytest.mark.parametrize(("dtype", "code", "held"), KINDS)
def test_small_floats_are_read_in_place(target, dtype, code, held):
    module = tir.build(parse(COPY.format(dtype)), target)
    a, b = np.arange(1, 9).astype(held), np.zeros(8, held)
    for _ in range(3):
        module(Foreign(a, code), Foreign(b, code))
        np.testing.assert_array_equal(a, b)
        a += 1
    module(a, Foreign(b, code))  # beside the bits themselves
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_elements_of_another_type_are_refused_by_name_each_time(target):
    module = tir.build(parse(COPY.format("bfloat16")), target)
    a, b = np.ones(8, "uint16"), np.zeros(8, "uint16")
    module(a, b)
    module(a, b)
    for _ in range(2):
        with pytest.raises(RunError, match="argument 1 `A` of .*: expected dtype bfloat16, got float8_e4m3fn"):
            module(Foreign(a, 10), b)
    bits = tir.build(parse(COPY.format("uint16")), target)
    with pytest.raises(RunError, match="expected dtype uint16, got bfloat16"):
        bits(Foreign(a, 4), b)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_what_cannot_be_read_is_refused_by_name(target):
    module = tir.build(parse(COPY.format("float32")), target)
    a, b = np.ones(8, "float32"), np.zeros(8, "float32")
    with pytest.raises(RunError, match="argument 1 `A` of .*device of DLPack type 2; expected one in host memory"):
        module(Foreign(a, 2, device=2), b)
    with pytest.raises(RunError, match="argument 2 `B` of .*cannot be read through DLPack"):
        module(a, Foreign(b, 3))  # opaque handles

    class Refuses(Foreign):
        def __dlpack__(self, **options):
            raise BufferError("use detach()")

    with pytest.raises(RunError, match=r"cannot be read through DLPack: use detach\(\)"):
        module(Refuses(a, 2), b)


def test_overlapping_tensors_are_found():
    module = tir.build(parse(COPY.format("bfloat16")))
    a = np.arange(12, dtype="uint16")
    with pytest.raises(RunError, match="overlaps"):
        module(Foreign(a[:8], 4), Foreign(a[4:], 4))


def test_an_array_keeps_the_capsule():
    from tir.dtype import DType
    from tir.interp.dlpack import host_array

    array = host_array(Foreign(np.arange(3, dtype="uint16"), 4), DType("bfloat16"))
    assert type(array.base.owner).__name__ == "PyCapsule"


def test_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed: tensors of another library")
    a = torch.arange(8, dtype=torch.float32).to(torch.bfloat16)
    b = torch.zeros(8, dtype=torch.bfloat16)
    tir.build(parse(COPY.format("bfloat16")))(a, b)
    assert torch.equal(a, b)
