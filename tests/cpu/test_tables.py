"""Functions of four bits of a byte, as of quantized weights: looked up in a register where the processor has AVX-512."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.function import PrimFunc
from tir.script import parse

LOOKS_UP = "llvm -mcpu=skylake-avx512 -mattr=+avx512f"
TEXT = """
@T.prim_func
def main(A: T.Buffer((1024,), "TYPE"), B: T.Buffer((1024,), "RESULT")):
    for i in range(1024 // LANES):
        for j in T.vectorized(LANES):
            B[i * LANES + j] = VALUE
"""
BYTE = "A[i * LANES + j]"


def program(value: str, dtype: str = "uint8", lanes: int = 16, result: str = "float32") -> PrimFunc:
    text = TEXT.replace("VALUE", value).replace("BYTE", BYTE)
    return parse(text.replace("LANES", str(lanes)).replace("TYPE", dtype).replace("RESULT", result))


def looks_up(func: PrimFunc, target: str = LOOKS_UP) -> bool:
    return "permvar" in tir.build(func, target).source("llvm")


def check(func: PrimFunc, dtype: str) -> None:
    """Compare every byte with the reference executor, on this machine."""
    a = np.arange(1024).astype(dtype)
    results = [np.zeros(1024, str(func.buffer_map[func.params[1]].dtype)) for _ in range(2)]
    for target, b in zip(("interpreter", "llvm"), results):
        tir.build(func, target)(a, b)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "value",
    [
        'T.cast(BYTE & T.uint8(15), "float32")',
        'T.cast(BYTE & T.uint8(15), "float32") - T.float32(8)',
        'T.float32(8.5) - T.cast((BYTE >> T.uint8(3)) & T.uint8(15), "float32") * T.float32(0.25)',
        'T.float32(0.7) * (T.cast((BYTE >> T.uint8(7)) & T.uint8(15), "float32") + T.float32(1e30))',
        'T.cast(T.cast(BYTE & T.uint8(15), "int32") * 300000000 - 8, "float32")',
        'T.cast((BYTE & T.uint8(15)) - T.uint8(8), "float32")',
        'T.cast(((BYTE + T.uint8(3)) & T.uint8(15)), "float32")',
        'T.cast((BYTE >> (BYTE & T.uint8(7))) & T.uint8(15), "float32")',
    ],
)
def test_a_function_of_four_bits_is_looked_up(value: str):
    func = program(value)
    assert looks_up(func)
    assert not looks_up(func, "llvm -mcpu=haswell -mattr=-avx512f")
    check(func, "uint8")


@pytest.mark.parametrize("value", ["(VALUE) * SCALE", "SCALE - (VALUE)", "(VALUE - SCALE) * (SCALE + T.float32(1))"])
def test_what_is_the_same_in_all_lanes_is_in_the_table(value: str):
    four = 'T.cast((BYTE >> T.uint8(4)) & T.uint8(15), "float32") - T.float32(8)'
    func = program(value.replace("VALUE", four).replace("SCALE", 'T.cast(A[i * 8 + 3], "float32")'))
    llvm = tir.build(func, LOOKS_UP).source("llvm")
    assert re.search(r"permvar\.sf\.512\(<16 x float> %", llvm)
    check(func, "uint8")


def test_both_halves_of_a_byte_are_extended_once():
    both = " + ".join(f'T.cast((BYTE >> T.uint8({by})) & T.uint8(15), "float32")' for by in (0, 4))
    code = tir.build(program(both), LOOKS_UP).source("asm")
    assert len(re.findall(r"vpmovzxbd", code)) == len(re.findall(r"vpsrld", code)) > 0


@pytest.mark.parametrize(
    ("value", "dtype", "lanes", "result"),
    [
        ('T.cast(BYTE & T.uint8(31), "float32")', "uint8", 16, "float32"),
        ('T.cast(BYTE & T.uint8(14), "float32")', "uint8", 16, "float32"),
        ('T.cast(BYTE | T.uint8(15), "float32")', "uint8", 16, "float32"),
        ('T.cast(BYTE & T.int8(15), "float32")', "int8", 16, "float32"),
        ('T.cast(T.cast(T.cast(BYTE & T.uint8(15), "int8"), "int16"), "float32")', "uint8", 16, "float32"),
        ('T.cast(BYTE & T.uint8(15), "float32")', "uint8", 8, "float32"),
        ('T.cast(BYTE & T.uint8(15), "float64")', "uint8", 16, "float64"),
        ('T.cast(BYTE & T.uint8(15), "float32") * T.cast(BYTE, "float32")', "uint8", 16, "float32"),
        ('T.cast(BYTE & T.uint8(15), "float32") / T.float32(3)', "uint8", 16, "float32"),
        ("T.float32(3) - T.float32(1)", "uint8", 16, "float32"),
    ],
)
def test_other_values_are_computed(value: str, dtype: str, lanes: int, result: str):
    func = program(value, dtype, lanes, result)
    whole = value.count("BYTE") != 2 and "/" not in value  # in a product with another value, one factor is looked up
    assert not (looks_up(func) and whole)
    check(func, dtype)


def test_a_shift_beyond_the_byte_is_of_a_byte():
    """The reference executor refuses it; generated code counts modulo eight, here as elsewhere."""
    a, b = np.arange(1024).astype("uint8"), np.zeros(1024, "float32")
    tir.build(program('T.cast((BYTE >> T.uint8(12)) & T.uint8(15), "float32")'))(a, b)
    np.testing.assert_array_equal(b, a >> 4)
