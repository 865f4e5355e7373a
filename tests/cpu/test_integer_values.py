"""Integers of data wrap around, in the executor and in generated code alike: NumPy says what comes out."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result


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
    "loaded int32": ("T.max(Y[i] + 1, Y[i]) % 8", [7, 7, 7, 4]),
    "a quotient of loaded int32": ("Y[i] * 6 // 4 + 40", [38, 37, 49, 44]),
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


# expressions of loaded integers that overflow: no algebra of unbounded integers applies
OVERFLOW = {
    "a congruential generator": ("(A[i] * {k} + {c}) % 3", lambda a, b: (a * 1103515245 + 12345) % 3),
    "a multiple divided": ("A[i] * 6 // 3", lambda a, b: a * 6 // 3),
    "a multiple divided by another": ("A[i] * 6 // 4", lambda a, b: a * 6 // 4),
    "the remainder of a multiple": ("A[i] * 4 % 12", lambda a, b: a * 4 % 12),
    "the double of a half": ("A[i] * 2 // 2", lambda a, b: a * 2 // 2),
    "truncated": ("T.truncdiv(A[i] * 2, 2) + T.truncmod(A[i] * 6, 3)", lambda a, b: _trunc(a * 2, 2) + np.fmod(a * 6, 3)),
    "the greater of a successor": ("T.max(A[i] + 1, A[i])", lambda a, b: np.maximum(a + 1, a)),
    "the less of a product": ("T.min(A[i] * 2, A[i])", lambda a, b: np.minimum(a * 2, a)),
    "the order of a successor": ("T.Cast('{t}', A[i] + 1 > A[i])", lambda a, b: a + 1 > a),
    "the order of sums": ("T.Cast('{t}', A[i] + B[i] < B[i])", lambda a, b: a + b < b),
    "a constant on the other side": ("T.Cast('{t}', A[i] - 5 < 7)", lambda a, b: a - 5 < 7),
    "a multiple that is small": ("T.Cast('{t}', A[i] * 4 < 12)", lambda a, b: a * 4 < 12),
    "a negative": ("T.Cast('{t}', 0 - A[i] <= 0)", lambda a, b: 0 - a <= 0),
    "a shift": ("T.Cast('{t}', ({one} << (A[i] & {last})) > 5)", lambda a, b: (np.ones_like(a) << (a & (a.itemsize * 8 - 1))) > 5),
    "a sum under a remainder": ("(A[i] % 12 + 5) % 3 + (A[i] // 4 + 3) // 5", lambda a, b: (a % 12 + 5) % 3 + (a // 4 + 3) // 5),
    "digits of a sum": ("(A[i] + B[i]) // 4 * 4 + (A[i] + B[i]) % 4", lambda a, b: a + b),
    "a condition on a sum": ("T.if_then_else(A[i] + 1 > 0, T.max(A[i] + 1, 0), 7)", lambda a, b: np.where(a + 1 > 0, a + 1, 7)),
    "a magnitude": ("T.abs(A[i]) // 3", lambda a, b: np.abs(a) // 3),
}  # fmt: skip


def _trunc(a: np.ndarray, b: int) -> np.ndarray:
    return (a - np.fmod(a, b)) // b


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("named", [False, True], ids=["in place", "named"])
@pytest.mark.parametrize("name", OVERFLOW)
def test_no_algebra_on_data_that_overflows(name, dtype, named):
    value, meaning = OVERFLOW[name]
    bits = np.iinfo(dtype)
    a = np.array([bits.min, bits.min + 7, -9, -1, 0, 3, 1000003, bits.max // 2 + 1, bits.max - 3, bits.max], dtype)
    b = np.roll(a, 3)
    wide = {"t": dtype, "k": f"T.{dtype}(1103515245)", "c": f"T.{dtype}(12345)", "one": f"T.{dtype}(1)"}
    value = value.format(**wide, last=f"T.{dtype}({bits.bits - 1})")
    body = f"O[i] = {value}"
    if named:
        body = f"x: T.{dtype} = A[i]\n        " + body.replace("A[i]", "x")
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((10,), "{dtype}"), B: T.Buffer((10,), "{dtype}"), O: T.Buffer((10,), "{dtype}")):
    for i in range(10):
        {body}
"""
    )
    with np.errstate(over="ignore"):
        expected = np.asarray(meaning(a, b)).astype(dtype)
    for found in results(func, {"A": a, "B": b}, dtype):
        assert found == expected.tolist()


# of a size of 64 bits, and what it is of 715827883
LOW_BITS = {
    "a remainder": ('T.Cast("int32", n * T.int64(6)) % 6', 2),
    "a difference": ('T.Cast("int32", n * T.int64(6)) - 3', -1),
    "a comparison": ('T.Select(T.Cast("int32", n * T.int64(6)) < 6, 1, 0)', 1),
}


@pytest.mark.parametrize("name", LOW_BITS)
def test_a_narrower_integer_has_the_low_bits_of_a_size(name: str):
    value, expected = LOW_BITS[name]
    func = parse(f'@T.prim_func\ndef f(n: T.int64, O: T.Buffer((1,), "int32")):\n    O[0] = {value}')
    for target in ("interpreter", "llvm"):
        assert tir.build(func, target).new(715827883).tolist() == [expected]


# a size of a buffer that is passed, the type of ``n`` in it, and the ``n`` for which it is 4
SIZES = {
    "the low bits of a wide size": ('T.Cast("int32", n * T.int64(4))', "int64", 2**30 + 1),
    "a sum of uint8": ("n + T.uint8(10)", "uint8", 250),
    "low bits that are multiplied": ('T.Cast("int8", n) * T.int8(2)', "int64", 2**40 + 130),
    "a shift": ("n << 1", "int32", 2),
    "whole vectors": ("(n + 3) & ~3", "int32", 2),
    "a choice": ("T.Select(n > 1, n, 9)", "int32", 4),
    "a conditional": ("T.if_then_else(n > 8, n - 5, 7)", "int32", 9),
    "a magnitude": ("T.abs(n)", "int32", -4),
}


@pytest.mark.parametrize("name", SIZES)
def test_an_argument_has_the_size_that_is_computed(name: str):
    size, dtype, n = SIZES[name]
    func = parse(
        f"""
@T.prim_func
def f(n: T.{dtype}, o: T.handle):
    O = T.match_buffer(o, ({size},), "int32")
    for i in range({size}):
        O[i] = T.Cast("int32", i) + 1
"""
    )
    for target in ("interpreter", "llvm"):
        o = np.zeros(4, "int32")
        tir.build(func, target)(n, o)
        assert o.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("op", ["T.FloorDiv", "T.truncdiv"])
def test_a_quotient_of_constants_wraps_on_the_simulator(op: str, dtype: str):
    least = np.iinfo(dtype).min
    value = f"{op}(T.{dtype}({least}), T.{dtype}(-1))"
    text = f'@T.prim_func\ndef f(O: T.Buffer((2,), "{dtype}")):\n    for i in T.thread_binding(1, "threadIdx.x"):\n'
    func = parse(text + f"        O[0] = {value}\n        O[1] = {value} // T.{dtype}(4)\n")
    for target in ("interpreter", "cuda-sim"):
        assert tir.build(func, target).new().tolist() == [least, least // 4]


def test_a_number_that_only_uint64_holds_is_one():
    assert tir.const(2**63 - 1).dtype == "int64"
    assert tir.const(2**63).dtype == "uint64"
    func = parse('@T.prim_func\ndef f(O: T.Buffer((1,), "uint64")):\n    O[0] = T.Cast("uint64", 2**64 - 1)')
    for target in ("interpreter", "llvm"):
        assert tir.build(func, target).new().tolist() == [2**64 - 1]


MOST = "T.int32(2147483647)"
# arithmetic of constants alone, and what it is: it wraps, and is no index arithmetic
CONSTANTS = {
    "a sum": (f"({MOST} + {MOST}) // 2", -1),
    "a product": (f"({MOST} * 4) % 5", 1),
    "a comparison": (f"T.Select({MOST} + {MOST} < 0, 1, 0)", 1),
    "a magnitude": (f"(T.abs(-{MOST}) + T.abs(-{MOST})) // 2", -1),
    "a complement": ("(~T.int32(1073741823) - T.int32(1342177280)) // -2", -939524096),
    "a shift": ("(T.shift_left(1, 30) + T.shift_left(1, 30)) // 2", -1073741824),
    "a choice": (f"(T.if_then_else(T.int32(1) > 0, {MOST}, 1) + {MOST}) // 2", -1),
    "a quotient": ("(T.FloorDiv(-2147483648, -1) + -3) // 2", 1073741822),
    "with a loop variable": (f"(i + ({MOST} + {MOST})) // 2", -1),
    "a cast": ('T.Cast("int32", T.int64(4611686018427387903)) % 6', 5),
    "a cast of a sum": ('T.Cast("int32", T.int64(4611686018427387903) + T.int64(1)) + 7', 7),
    "a mask of all bits": ("T.Cast('int32', A[i] & -1) % 4", 3),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_wrap_around(name: str):
    value, expected = CONSTANTS[name]
    arrays = {"A": ints("int32", 7)}
    assert results(elementwise(value, arrays, "int32"), arrays, "int32") == [[expected]] * 4


@pytest.mark.parametrize(
    "value, said",
    [
        ("i * 100000000 // 3", r"`i \* 100000000` is 2200000000, which int32 does not hold"),
        ("n + i", r"`n \+ i` is 2147483648, which int32 does not hold"),
        ("T.max(n * 3, i)", r"`n \* 3` is 6442450938, which int32 does not hold"),
    ],
)
def test_the_executor_says_where_index_arithmetic_overflows(value, said):
    func = parse(
        f"""
@T.prim_func
def f(n: T.int32, O: T.Buffer((32,), "int32")):
    for i in range(32):
        O[i] = {value}
"""
    )
    with pytest.raises(tir.RunError, match=said):
        tir.build(func, "interpreter")(2**31 - 2, np.zeros(32, "int32"))
    o = np.zeros(32, "int32")
    tir.build(func)(2**31 - 2, o)  # not defined, but no fault


def test_an_index_that_overflows_is_out_of_bounds():
    func = parse(
        """
@T.prim_func
def f(P: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    for i in range(4):
        O[i] = A[P[i] + i]
"""
    )
    with pytest.raises(tir.RunError, match=r"read of A\[2147483648\] is out of bounds"):
        tir.build(func, "interpreter")(ints("int32", 0, 2**31 - 1, 0, 0), *np.zeros((2, 4), "int32"))


@pytest.mark.parametrize("target", ["interpreter", "llvm", "cuda-ptx", "cuda-sim"])
@pytest.mark.parametrize(
    "index",
    [
        "P[0] + P[1] - 2147483647",
        "P[0] + P[1] - 2147483647 + i",
        "P[0] + (P[1] - 2147483647) + i",
        "i + P[0] * 2 + P[2]",
    ],
)
def test_an_index_of_data_is_the_same_in_any_order(index, target):
    """Its partial sums may leave int32."""
    func = parse(
        f"""
@T.prim_func
def f(P: T.Buffer((3,), "int32"), A: T.Buffer((8,), "int32"), O: T.Buffer((4,), "int32")):
    for i in {'T.thread_binding(4, thread="threadIdx.x")' if "cuda" in target else "range(4)"}:
        O[i] = A[{index}]
"""
    )
    p, o = ints("int32", 2**30, 2**30, 1 - 2**31), np.zeros(4, "int32")
    tir.build(func, target)(p, np.arange(10, 18, dtype="int32"), o)
    assert o.tolist() == [11 + i * index.count("i") for i in range(4)]


FLOATS = [
    0.0,
    -0.9,
    1.5,
    -1.5,
    126.9,
    300.0,
    -300.0,
    2.0**31,
    -(2.0**31),
    1e30,
    -1e30,
    np.inf,
    -np.inf,
    np.nan,
    2.0**63,
    2.0**64,
]


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_floats_become_the_nearest_integer_that_there_is(source, target):
    """Toward zero; nan gives 0; a type of fewer than 32 bits gets the low bits of an int32."""
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((16,), "float64"), O: T.Buffer((16,), "{target}")):
    for i in range(16):
        O[i] = T.Cast("{target}", T.Cast("{source}", A[i]))
"""
    )
    sch = tir.Schedule(func)
    sch.vectorize("i")
    wide = np.iinfo(target if target[-2:] in ("32", "64") else "int32")
    with np.errstate(over="ignore"):
        given = [float(_rounded(x, source)) for x in FLOATS]
    exact = [0 if x != x else wide.max if x >= wide.max else wide.min if x <= wide.min else int(x) for x in given]
    expected = np.array(exact, wide.dtype).astype(target).tolist()
    for program in (func, sch.mod):
        for kind in ("interpreter", "llvm"):
            o = np.zeros(16, target)
            tir.build(program, kind)(np.array(FLOATS), o)
            assert o.tolist() == expected


def _rounded(x: float, dtype: str):
    return np.float64(x).astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize("symbol", ["<<", ">>"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_a_shift_by_too_much_is_an_error_of_the_executor(symbol, dtype, vectorized):
    """Compiled code shifts by the last bits of the amount."""
    bits = np.iinfo(dtype).bits
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer((4,), "{dtype}"), B: T.Buffer((4,), "{dtype}"), O: T.Buffer((4,), "{dtype}")):
    for i in range(4):
        O[i] = A[i] {symbol} B[i]
"""
    )
    if vectorized:
        sch = tir.Schedule(func)
        sch.vectorize("i")
        func = sch.mod
    a, o = ints(dtype, 5, 6, 100, 77), np.zeros(4, dtype)
    by = ints(dtype, 1, bits, 3, bits + 1)
    with pytest.raises(tir.RunError, match=f"shift by {bits} of a {bits}-bit integer"):
        tir.build(func, "interpreter")(a, by, o)
    tir.build(func)(a, by, o)
    shift = np.left_shift if symbol == "<<" else np.right_shift
    assert o.tolist() == shift(a, by & (bits - 1)).tolist()


@pytest.mark.parametrize("kind", ["T.serial", "T.parallel", "T.unroll", "T.vectorized"])
@pytest.mark.parametrize(
    ("dtype", "first", "count"), [("uint8", 0, 128), ("uint8", 200, 56), ("int8", 100, 28), ("int8", -100, 100), ("uint16", 9, 3)]
)  # fmt: skip
def test_a_loop_of_narrow_or_unsigned_integers_has_all_iterations(kind, dtype, first, count):
    extents = [f"T.{dtype}({count})"] + [f'T.Cast("{dtype}", N[0])'] * (kind in ("T.serial", "T.parallel"))
    for extent in extents:
        func = parse(f"""
@T.prim_func
def f(N: T.Buffer((1,), "int32"), O: T.Buffer((400,), "int32")):
    for k in {kind}(T.{dtype}({first}), T.{dtype}({first}) + {extent}):
        O[T.Cast("int32", k) + 130] = T.Cast("int32", k) + 7
""")
        found, expected, k = np.zeros(400, "int32"), np.zeros(400, "int32"), np.arange(first, first + count)
        expected[k + 130] = k + 7
        tir.build(func, "llvm")(np.array([count], "int32"), found)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else((k + k) * T.uint8(64) == T.uint8(0), 7, 9)",  # holds in the third iteration, too
        "A[(k + T.uint8(250)) // T.uint8(3)]",
        "A[k * T.uint8(100) % T.uint8(7)]",
        "A[k] + T.if_then_else(k + T.uint8(250) < T.uint8(253), A[k + T.uint8(1)], 5)",
    ],
)
@pytest.mark.parametrize("kind", ["T.serial", "T.vectorized"])
def test_a_narrow_loop_variable_wraps_around_in_each_lane(kind, value):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((256,), "int32"), O: T.Buffer((16,), "int32")):
    for k in {kind}(T.uint8(16)):
        O[k] = {value}
""")
    assert_same_result(func, func, [np.arange(256, dtype="int32") * 3, np.zeros(16, "int32")], ["llvm"])


def test_memory_of_narrow_extents_has_all_elements():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((20, 20), "int32"), O: T.Buffer((20, 20), "int32")):
    B = T.alloc_buffer((T.uint8(20), T.uint8(20)), "int32")
    for i, j in T.grid(T.uint8(20), T.uint8(20)):
        B[j, i] = A[i, j]
    for i, j in T.grid(T.uint8(20), T.uint8(20)):
        O[i, j] = B[i, j]
""")
    assert_same_result(
        func, func, [np.arange(400, dtype="int32").reshape(20, 20), np.zeros((20, 20), "int32")], ["llvm"]
    )
