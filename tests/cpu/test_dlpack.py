"""Tensors of other libraries in host memory: read through DLPack, never copied, also of types that NumPy has not."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_tensors import Foreign, copy_program

import tir
from tir.errors import RunError
from tir.script import parse

KINDS = [("bfloat16", 4, "uint16"), ("float8_e4m3fn", 10, "uint8"), ("float8_e5m2", 12, "uint8")]


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
@pytest.mark.parametrize(("dtype", "code", "held"), KINDS)
def test_small_floats_are_read_in_place(target, dtype, code, held):
    module = tir.build(copy_program(dtype), target)
    a, b = np.arange(1, 9).astype(held), np.zeros(8, held)
    for _ in range(3):
        module(Foreign(a, code), Foreign(b, code))
        np.testing.assert_array_equal(a, b)
        a += 1
    module(a, Foreign(b, code))  # beside the bits themselves
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_elements_of_another_type_are_refused_by_name_each_time(target):
    module = tir.build(copy_program("bfloat16"), target)
    a, b = np.ones(8, "uint16"), np.zeros(8, "uint16")
    module(a, b)
    module(a, b)
    for _ in range(2):
        with pytest.raises(RunError, match="argument 1 `A` of .*: expected dtype bfloat16, got float8_e4m3fn"):
            module(Foreign(a, 10), b)
    bits = tir.build(copy_program("uint16"), target)
    with pytest.raises(RunError, match="expected dtype uint16, got bfloat16"):
        bits(Foreign(a, 4), b)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_what_cannot_be_read_is_refused_by_name(target):
    module = tir.build(copy_program("float32"), target)
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
    module = tir.build(copy_program("bfloat16"))
    a = np.arange(12, dtype="uint16")
    with pytest.raises(RunError, match="overlaps"):
        module(Foreign(a[:8], 4), Foreign(a[4:], 4))


def test_an_array_keeps_the_capsule():
    from tir.dtype import DType
    from tir.interp.dlpack import host_array

    array = host_array(Foreign(np.arange(3, dtype="uint16"), 4), DType("bfloat16"))
    assert type(array.base.owner).__name__ == "PyCapsule"


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_what_must_not_be_written_is_not(target):
    """Also where it is seen through DLPack: the flag is in the capsules of NumPy 2.1 and later."""
    module = tir.build(copy_program("float32"), target)
    fixed = np.frombuffer(bytes(32), "float32")

    class Other:
        def __dlpack_device__(self):
            return fixed.__dlpack_device__()

        def __dlpack__(self, **options):
            return fixed.__dlpack__(**options)

    module(Other(), np.zeros(8, "float32"))
    for _ in range(2):
        with pytest.raises(RunError, match="argument 2 `B` of copy.*read-only"):
            module(np.ones(8, "float32"), Other())
    assert not fixed.any()


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_capsules_that_cannot_say_that_they_are_read_only_are_written(target):
    module = tir.build(copy_program("float32"), target)
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    module(Foreign(a, 2), Foreign(b, 2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_devices_and_elements_that_no_array_has_are_named(target):
    module = tir.build(copy_program("float32"), target)

    class Meta(Foreign):
        def __dlpack_device__(self):
            raise ValueError("Unknown device type meta for Dlpack")

    with pytest.raises(RunError, match="argument 1 `A` of .*Unknown device type meta"):
        module(Meta(np.ones(8, "float32"), 2), np.zeros(8, "float32"))
    pairs = Foreign(np.ones(8, "uint8"), 17, bits=4, lanes=2)
    with pytest.raises(RunError, match="float4_e2m1fn in 2 lanes; give it as its bytes, for a buffer of uint8"):
        module(pairs, np.zeros(8, "float32"))


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_numbers_may_be_arrays_of_no_dimensions(target):
    module = tir.build(
        parse("""
@T.prim_func
def f(B: T.Buffer((1,), "float32"), k: T.float32, n: T.int32):
    B[0] = k * T.Cast("float32", n)
"""),
        target,
    )

    class Number:
        shape = ()

        def item(self):
            return 3

    b = np.zeros(1, "float32")
    module(b, np.array(2.0, "float32"), Number())
    assert b[0] == 6
    with pytest.raises(RunError, match=r"argument 3 `n` of f.*an integer \(int32\).*3.0"):
        module(b, 2.0, np.float32(3))
