"""Integers of data wrap around, in the executor and in generated code alike: NumPy says what comes out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.script import parse


def elementwise(value: str, arrays: dict[str, np.ndarray], out: str) -> tir.PrimFunc:
    """``O[i] = value`` for each element; ``value`` may use the arrays and ``i``."""
    n = len(next(iter(arrays.values())))
    params = [f'{name}: T.Buffer(({len(a)},), "{a.dtype}")' for name, a in arrays.items()]
    return parse(
        f"""
@T.prim_func
def f({", ".join(params)}, O: T.Buffer(({n},), "{out}")):
    for i in range({n}):
        O[i] = {value}
"""
    )


def results(func: tir.PrimFunc, arrays: dict[str, np.ndarray], out: str) -> list[list[int]]:
    """What the executor and generated code give, of the loop as it is and of a vectorized one."""
    sch = tir.Schedule(func)
    sch.vectorize("i")
    found = []
    for program in (func, sch.mod):
        for target in ("interpreter", "llvm"):
            o = np.zeros(len(next(iter(arrays.values()))), out)
            tir.build(program, target)(*arrays.values(), o)
            found.append(o.tolist())
    return found


def ints(dtype: str, *values: int) -> np.ndarray:
    return np.array(values, dtype)


# an expression of arrays, and what it is of each element, wrapped to its type
SIGNS = {
    "a cast of the same width": (
        "T.Cast('int8', A[i]) // T.int8(3)",
        {"A": ints("uint8", 200, 100, 255, 3)},
        "int8",
        [-19, 33, -1, 1],
    ),
    "its remainder": ("T.Cast('int8', A[i]) % T.int8(3)", {"A": ints("uint8", 200, 100, 255, 3)}, "int8", [1, 1, 2, 0]),
    "a sum of what is not negative": (
        "(T.max(A[i], T.int8(0)) + T.max(B[i], T.int8(0))) // T.int8(3)",
        {"A": ints("int8", 100, -5, 100, 7), "B": ints("int8", 100, 9, 27, 8)},
        "int8",
        [-19, 3, 42, 5],
    ),
    "one of int32": (
        "(T.max(A[i], 0) + T.max(B[i], 0)) // 3",
        {"A": ints("int32", 2**31 - 1, 5, 9, 7), "B": ints("int32", 2**31 - 1, -9, 3, 8)},
        "int32",
        [-1, 1, 4, 5],
    ),
    "a product of what is not negative": (
        "T.Cast('int16', A[i]) * T.Cast('int16', B[i]) % T.int16(10)",
        {"A": ints("uint8", 255, 3, 200, 0), "B": ints("uint8", 255, 5, 200, 9)},
        "int16",
        [9, 5, 4, 0],
    ),
    "a bucket of a hash": (
        "T.Cast('int32', A[i] * T.uint32(2654435761)) % 10",
        {"A": ints("uint32", 0, 1, 2, 3, 4, 5)},
        "int32",
        [0, 5, 6, 1, 2, 7],
    ),
    "a divisor that is not known": (
        "T.Cast('int32', A[i]) // T.max(B[0], 1)",
        {"A": ints("uint32", 2**32 - 9, 100, 2**31, 7), "B": ints("int32", 3, 0, 0, 0)},
        "int32",
        [-3, 33, -715827883, 2],
    ),
    "one that turns negative": (
        "A[i] // T.Cast('int16', B[i])",
        {"A": ints("int16", -32768, 9, -7, 7), "B": ints("uint16", 65533, 65535, 2, 65534)},
        "int16",
        [10922, -9, -4, -4],
    ),
    "a magnitude": ("T.abs(A[i]) // T.int8(3)", {"A": ints("int8", -128, -7, 127, 0)}, "int8", [-43, 2, 42, 0]),
    "the sign of a magnitude": (
        "T.Cast('int32', T.abs(A[i]) >= T.int8(0))",
        {"A": ints("int8", -128, -7, 127, 0)},
        "int32",
        [0, 1, 1, 1],
    ),
    "a wide integer that is narrowed": (
        "T.Cast('int32', T.max(A[i], T.int64(0))) // 3",
        {"A": ints("int64", 2**32 - 3, 10, -4, 2**40 + 6)},
        "int32",
        [-1, 3, 0, 2],
    ),
    "an index": (
        "W[T.Cast('int32', T.Cast('int8', A[i]) // T.int8(100)) + 2]",
        {"A": ints("uint8", 200, 100, 255, 3), "W": ints("int32", 0, 1, 2, 3, 4)},
        "int32",
        [1, 3, 1, 2],
    ),
    "a condition": (
        "T.if_then_else(T.Cast('int8', A[i]) // T.int8(3) > T.int8(40), 1, 2)",
        {"A": ints("uint8", 200, 100, 255, 126)},
        "int32",
        [2, 2, 2, 1],
    ),
}


@pytest.mark.parametrize("name", SIGNS)
def test_a_quotient_of_what_may_have_wrapped(name):
    value, arrays, out, expected = SIGNS[name]
    for found in results(elementwise(value, arrays, out), arrays, out):
        assert found == expected


@pytest.mark.parametrize("name", [name for name in SIGNS if "magnitude" not in name])
def test_a_kernel_divides_with_care(name):
    """CUDA's ``/`` and ``%``, which round toward zero, stand only where nothing is negative."""
    value, arrays, out, _ = SIGNS[name]
    sch = tir.Schedule(elementwise(value, arrays, out))
    sch.bind("i", "threadIdx.x")
    source = tir.build(sch.mod, "cuda -arch=sm_80").source("cuda")
    assert re.search(r"floor(div|mod)\(", source.split("__global__")[1])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("op", ["A // B", "A % B", "T.truncdiv(A, B)", "T.truncmod(A, B)"])
def test_the_least_integer_divided_by_minus_one_wraps(op, dtype):
    """It does not end the process, as the processor's division would."""
    least = np.iinfo(dtype).min
    arrays = {"A": ints(dtype, least, least, 8, 5), "B": np.array([-1, 2, -1, 3]).astype("u" + dtype)}
    value = op.replace("A", "A[i]").replace("B", f"T.Cast('{dtype}', B[i])")
    expected = [least, least // 2, -8, 1] if "//" in op or "div" in op else [0, 0, 0, 2]
    for found in results(elementwise(value, arrays, dtype), arrays, dtype):
        assert found == expected


def test_as_many_iterations_as_a_quotient_that_may_have_wrapped():
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((3,), "uint8"), O: T.Buffer((3,), "int32")):
    for i in range(3):
        for k in range(T.Cast("int32", T.Cast("int8", A[i]) // T.int8(50)) + 6):
            O[i] = O[i] + 1
"""
    )
    for target in ("interpreter", "llvm"):
        o = np.zeros(3, "int32")
        tir.build(func, target)(ints("uint8", 200, 100, 255), o)
        assert o.tolist() == [4, 8, 5]


@pytest.mark.parametrize(
    "value", ["A[i // 4] + A[i % 4]", "A[(i * 3 + 1) // 5] + A[(i + 3) % 5]", "A[i % n] + A[i // n]"]
)
def test_quotients_of_loop_variables_stay_unsigned(value):
    func = parse(
        f"""
@T.prim_func
def f(a: T.handle, O: T.Buffer((16,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in range(16):
        O[i] = {value}
"""
    )
    source = tir.build(func).source("llvm")
    (body,) = re.findall(r'^define internal i32 @"?tir.main.body.*?^}', source, re.MULTILINE | re.DOTALL)
    assert not re.search(r"sdiv|srem|xor", body)


X = ints("int8", 127, 1, -128, -100)
TABLE = np.arange(1000, 1512, dtype="int32")
# an index of narrow arithmetic, and what it is for each element
NARROW = {
    "a difference": ("T.Cast('int32', X[i] - T.int8(100)) + 128", [155, 29, 156, 184]),
    "a sum": ("T.Cast('int32', X[i] + T.int8(100)) + 128", [99, 229, 100, 128]),
    "a product": ("T.Cast('int32', X[i] * T.int8(3)) + 128", [253, 131, 0, 84]),
    "a greater one": ("T.Cast('int32', T.max(X[i] + T.int8(1), X[i])) + 128", [255, 130, 1, 29]),
    "a selection": ("T.Select(X[i] + T.int8(1) > X[i], 1, 2)", [2, 1, 1, 1]),
    "a choice": ("T.if_then_else(X[i] + T.int8(1) > X[i], 1, 2)", [2, 1, 1, 1]),
    "of a loop variable": ("T.Cast('int32', T.Cast('int8', i * 40) + T.int8(100)) + 128", [228, 12, 52, 92]),
    "int16": ("T.Cast('int32', (T.Cast('int16', X[i]) + T.int16(32700)) // T.int16(256)) + 128", [0, 255, 255, 255]),
}


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("access", ["O[i] = A[AT]", "O[AT] = A[i]", "O[AT] = A[AT]"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_arithmetic_in_an_index_wraps(name, access, vectorized):
    index, places = NARROW[name]
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((512,), "int32"), X: T.Buffer((4,), "int8"), Y: T.Buffer((4,), "int32"), O: T.Buffer((512,), "int32")):
    for i in range(4):
        {access.replace("AT", index)}
"""
    )
    if vectorized:
        if len(set(places)) < 4 and access.startswith("O[AT]"):
            return  # a race
        sch = tir.Schedule(func)
        sch.vectorize("i", unsafe=access.startswith("O[AT]"))
        func = sch.mod
    expected = np.full(512, -1, "int32")
    for i, at in enumerate(places):
        expected[at if access.startswith("O[AT]") else i] = TABLE[at if access.endswith("A[AT]") else i]
    y = ints("int32", 2**31 - 1, 2**31 - 2, 6, 3)
    for target in ("interpreter", "llvm"):
        o = np.full(512, -1, "int32")
        tir.build(func, target)(TABLE, X, y, o)
        assert (o == expected).all()
