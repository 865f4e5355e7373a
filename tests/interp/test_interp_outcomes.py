"""What numbers of each type are held as, and which arguments a call takes: tables."""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import outcomes
import pytest

import tir
from tir import expr
from tir.dtype import DType
from tir.interp import arguments, numbers
from tir.script import parse

TABLE = Path(__file__).parent / "outcomes_numbers.txt"
TYPES = {
    "I4": "int4", "U4": "uint4", "U1": "uint1", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16",
    "I32": "int32", "U32": "uint32", "I64": "int64", "U64": "uint64", "B": "bool", "H": "handle", "F16": "float16",
    "F32": "float32", "F64": "float64", "BF": "bfloat16", "E4": "float8_e4m3fn", "E5": "float8_e5m2",
    "F4": "float4_e2m1fn", "V": "float32x4", "I4x4": "int4x4", "U4x4": "uint4x4", "I8x4": "int8x4",
    "I32x4": "int32x4", "I64x4": "int64x4", "B4": "boolx4", "F32x4": "float32x4", "F16x4": "float16x4",
    "BF4": "bfloat16x4",
}  # fmt: skip
PROGRAMS = {
    "simple": ('A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")', "B[0] = A[1]"),
    "sizes": ('a: T.handle, b: T.handle, n: T.int32', 'A = T.match_buffer(a, (n,)); B = T.match_buffer(b, (n,)); B[0] = A[0]'),
    "solved": ("a: T.handle, b: T.handle", "n = T.int32(); A = T.match_buffer(a, (n,)); B = T.match_buffer(b, (n,)); B[0] = A[0]"),
    "twice": ("a: T.handle, b: T.handle", "n = T.int32(); A = T.match_buffer(a, (n * 2,)); B = T.match_buffer(b, (n,)); B[0] = A[0]"),
    "strided": ("a: T.handle, b: T.handle", "n = T.int32(); s = T.int32(); A = T.match_buffer(a, (n, 2), strides=(s, 1)); B = T.match_buffer(b, (n,)); B[0] = A[0, 0]"),
    "rows": ('A: T.Buffer((2, 3, 4), "float32")', "A[0, 0, 0] = 1"),
    "pointer": ("p: T.handle", "T.evaluate(0)"),
    "sizes_after": ("a: T.handle, n: T.int32", "m = T.int32(); A = T.match_buffer(a, (m,)); A[0] = n"),
    "scalars": ("x: T.uint8, y: T.float32, z: T.bool, w: T.int64", "T.evaluate(x)"),
    "lanes": ('A: T.Buffer((2,), "float32x4")', "A[0] = T.Broadcast(T.float32(1), 4)"),
    "offset": ("a: T.handle", "A = T.match_buffer(a, (4,), elem_offset=2); A[0] = 1"),
    "same_pointer": ("a: T.handle, b: T.handle", "A = T.match_buffer(a, (4,)); B = T.match_buffer(b, (4,), data=A.data); B[0] = A[1]"),
    "aliased": ("a: T.handle, b: T.handle", 'T.func_attr({"tir.noalias": False}); A = T.match_buffer(a, (4,)); B = T.match_buffer(b, (4,)); B[0] = A[1]'),
    "flags": ('A: T.Buffer((2,), "bool")', "A[0] = A[1]"),
    "halves": ('A: T.Buffer((2,), "bfloat16")', "A[0] = A[1]"),
    "bits": ('A: T.Buffer((2,), "int4")', "A[0] = A[1]"),
    "unknown_size": ("a: T.handle", "n = T.int32(); A = T.match_buffer(a, (n + 1,)); A[0] = 1"),
    "by_zero": ("a: T.handle, n: T.int32", "A = T.match_buffer(a, (4 // n,)); A[0] = 1"),
}  # fmt: skip


def program(name):
    parameters, body = PROGRAMS[name]
    return parse(
        "\n    ".join(
            [f"@T.prim_func(check_well_formed={name != 'unknown_size'})\ndef {name}({parameters}):", *body.split("; ")]
        )
        + "\n"
    )


def called(func, *args):
    """What a function was given: its numbers, and the shapes of its arrays."""
    values, arrays = arguments.bind_arguments(func, args)
    return {v.name: x for v, x in values.items()}, {b.name: (a.dtype.name, a.shape) for b, a in arrays.items()}


def one(func, at, arg):
    values = {}
    arguments.bind_one(func, func.params[at], arg, values)
    return {v.name: x for v, x in values.items()}


def names():
    x8, read_only = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    read_only.flags.writeable = False
    n, m, k = (tir.Var(name) for name in "nmk")
    return {
        **vars(expr), **vars(arguments), **vars(numbers), "math": math, "np": np, "ml_dtypes": ml_dtypes,
        **{name: DType(text) for name, text in TYPES.items()}, "call": called, "one": one, "to_odd": numbers._to_odd_float32,
        "x4": x8[:4].copy(), "x8": x8, "y4": np.zeros(4, "float32"), "z3": np.zeros(3, "float32"),
        "x44": np.zeros((4, 4), "float32"), "read_only": read_only, "n": n, "m": m, "k": k,
        "unaligned": np.zeros(17, np.int8)[1:].view("float32"), **{name: program(name) for name in PROGRAMS},
    }  # fmt: skip


@pytest.mark.parametrize("title", outcomes.titles(TABLE))
def test_numbers_and_arguments(request, title):
    with np.errstate(over="ignore", invalid="ignore"):  # as the executor runs
        outcomes.check(request, TABLE, title, names())
