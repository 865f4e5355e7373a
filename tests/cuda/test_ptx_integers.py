"""Integers of data wrap around in compiled kernels, where C leaves the overflow of int undefined, and floats become integers."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result

EDGES = [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 46341, 65535, 2**31 - 2, 2**31 - 1]


def executed(text: str, dtype: str, values: np.ndarray, lanes: int = 1) -> np.ndarray:
    """``text`` of ``A[i]`` in a kernel of a thread for each value, or of a vector of ``lanes`` at ``at``."""
    n, at = len(values), "i" if lanes == 1 else f"T.ramp(i * {lanes}, 1, {lanes})"
    func = f"""
@T.prim_func
def f(A: T.Buffer(({n},), "{values.dtype}"), O: T.Buffer(({n},), "{dtype}")):
    for i in T.thread_binding({n // lanes}, thread="threadIdx.x"):
        O[{at}] = {text.format(f"A[{at}]")}
"""
    o = np.zeros(n, dtype)
    tir.build(parse(func), "cuda-ptx")(values, o)
    return o


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("T.max({0}, {0} - T.int{1}(2))", lambda x: np.maximum(x, x - 2)),
        ("T.Select({0} + T.int{1}(1) > {0}, T.int{1}(1), T.int{1}(0))", lambda x: x + 1 > x),
        ("({0} * {0}) % T.int{1}(33)", lambda x: x * x % 33),
        ("({0} * T.int{1}(6)) // T.int{1}(3)", lambda x: x * 6 // 3),
        ("T.min(T.abs({0}), T.int{1}(5))", lambda x: np.minimum(np.abs(x), 5)),
        ("T.max(T.int{1}(0) - {0}, T.int{1}(-3))", lambda x: np.maximum(-x, -3)),
        ("{0} // T.int{1}(-1)", lambda x: -x),
    ],
)
def test_signed_data_wraps_around(text, of, bits):
    x = (np.array(EDGES, "int64") << (bits - 32)).astype(f"int{bits}")
    x[1:-1] += np.array(1, x.dtype)
    with np.errstate(over="ignore"):
        assert executed(text.replace("{1}", str(bits)), f"int{bits}", x).tolist() == of(x).astype(x.dtype).tolist()


def test_vectors_of_signed_data_wrap_around():
    x = np.array(EDGES, "int32")
    with np.errstate(over="ignore"):
        two = "T.broadcast(2, 2)"
        assert executed(f"T.max({{0}}, {{0}} - {two})", "int32", x, 2).tolist() == np.maximum(x, x - 2).tolist()


def test_a_product_of_uint16_wraps_around():
    x = np.array([0, 1, 255, 256, 46341, 65535], "uint16")
    text = "T.Cast('int32', {0} * {0}) // 3"
    with np.errstate(over="ignore"):
        assert executed(text, "int32", x).tolist() == ((x * x).astype("int32") // 3).tolist()


def test_a_sum_in_place_wraps_around():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((1,), "int32"), O: T.Buffer((1,), "int32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for k in range(3):
            O[0] = O[0] + A[0]
""")
    assert " += A" not in tir.build(func, "cuda-ptx").source()


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_float_becomes_the_nearest_integer_and_nan_is_zero(source, target, lanes):
    x = np.array([np.nan, np.inf, -np.inf, -1.5, 2.5, 300.0], source)
    wide = np.iinfo(target if np.iinfo(target).bits >= 32 else "int32")
    expected = [0, wide.max, wide.min, -1 if wide.min else 0, 2, 300]
    cast = f"T.Cast('{target}{'' if lanes == 1 else f'x{lanes}'}', {{0}})"
    assert executed(cast, target, x, lanes).tolist() == np.array(expected, wide.dtype).astype(target).tolist()


@pytest.mark.parametrize(("dtype", "first", "size"), [("int8", 128, 512), ("int16", 1 << 15, 1 << 17)])
def test_a_difference_that_wraps_and_one_that_does_not_are_two_indices(dtype, first, size):
    """NVVM takes the one for the other where the narrow one is written as a cast."""
    f = parse(f"""
@T.prim_func
def f(A: T.Buffer(({size},), "int32"), X: T.Buffer((64,), "{dtype}"), Y: T.Buffer((64,), "{dtype}"), O: T.Buffer((64,), "int32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        O[i] = A[T.Cast("int32", X[i] - Y[i]) + {first}] + A[T.Cast("int32", X[i]) - T.Cast("int32", Y[i]) + {2 * first - 1}]
""")
    rng, least = np.random.default_rng(1), np.iinfo(dtype).min
    x, y = (rng.integers(least, -least, 64).astype(dtype) for _ in range(2))
    a, o = np.arange(size, dtype="int32") * 7, np.zeros(64, "int32")
    tir.build(f, "cuda-ptx -arch=sm_80")(a, x, y, o)
    wide = x.astype("int32") - y
    assert (abs(wide) > first).any()
    np.testing.assert_array_equal(o, a[(x - y).astype("int32") + first] + a[wide + 2 * first - 1])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("text", ["T.max(X[i] - Y[i], Y[i])", "(X[i] - Y[i]) // Y[i]", "(X[i] - Y[i]) % Y[i] - X[i]"])
def test_a_narrow_difference_has_its_type(text, dtype):
    f = parse(f"""
@T.prim_func
def f(X: T.Buffer((64,), "{dtype}"), Y: T.Buffer((64,), "{dtype}"), O: T.Buffer((64,), "{dtype}")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        O[i] = {text}
""")
    most = np.iinfo(dtype).max
    rng = np.random.default_rng(2)
    args = [rng.integers(-most, most, 64).astype(dtype), rng.integers(1, most, 64).astype(dtype)]
    assert_same_result(f, f, [*args, np.zeros(64, dtype)], ["cuda-ptx"])


MADE = ["A[{0}] + B[{0}]", "T.int8(1) - A[{0}]", "T.abs(A[{0}])", "T.truncdiv(A[{0}], T.int8(-1))", "A[{0}] * T.int8(-1)",
        "A[{0}] // T.int8(-1)", 'T.Cast("int8", T.Cast("int16", A[{0}]) + T.Cast("int16", B[{0}]))']  # fmt: skip


def test_sums_and_negatives_of_16_bytes_are_widened_by_their_own_sign():
    """NVVM takes the high bits of the bytes for theirs, in one lane of four."""
    used = ["T.max({0}, T.int8(1))", "({0}) >> T.int8(1)", 'T.Cast("int8", T.Cast("float32", {0}) * T.float32(0.5))']
    texts = [f.format(made.format("i")) for made in MADE for f in used]
    stores = "".join(
        f"        for i in T.vectorized(16):\n            O[{k}, i] = {text}\n" for k, text in enumerate(texts)
    )
    f = parse(f"""
@T.prim_func
def f(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8"), O: T.Buffer(({len(texts)}, 16), "int8")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
{stores}""")
    a, b = np.random.default_rng(1).integers(-128, 128, (2, 16)).astype("int8")
    assert_same_result(f, f, [a, b, np.zeros((len(texts), 16), "int8")], ["cuda-ptx"])


@pytest.mark.parametrize(("dtype", "first", "count"), [("uint8", 200, 56), ("int8", 100, 28)])
@pytest.mark.parametrize("target", ["cuda-sim", "cuda-ptx"])
def test_a_loop_may_end_where_its_type_does(target, dtype, first, count):
    loops = [f"for k in T.serial(T.{dtype}({first}), T.{dtype}({first}) + {extent}):"
             for extent in (f"T.{dtype}({count})", f'T.Cast("{dtype}", N[0])')]  # fmt: skip
    stores = "".join(f'        {loop}\n            O[{n}, T.Cast("int32", k)] = 7\n' for n, loop in enumerate(loops))
    f = parse(f"""
@T.prim_func
def f(N: T.Buffer((1,), "int32"), O: T.Buffer((2, 300), "int32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
{stores}""")
    o = np.zeros((2, 300), "int32")
    tir.build(f, target)(np.array([count], "int32"), o)
    assert [np.flatnonzero(row).tolist() for row in o] == [list(range(first, first + count))] * 2


@pytest.mark.parametrize("target", ["interpreter", "llvm", "cuda-sim", "cuda-ptx"])
@pytest.mark.parametrize("q, s", [(31, 0), (31, -2), (20, 5), (5, 5), (3, 7), (0, 0)])
@pytest.mark.parametrize("shifts", ["{q}, {s}", "q, s"])
def test_fixed_point_products(target, q, s, shifts):
    loop = "range(10)" if target in ("interpreter", "llvm") else 'T.thread_binding(10, thread="threadIdx.x")'
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((10,), "int32"), O: T.Buffer((10,), "int32"), q: T.int32, s: T.int32):
    for i in {loop}:
        O[i] = T.q_multiply_shift(A[i], A[9 - i], {shifts.format(q=q, s=s)})
""")
    a, o = np.array(EDGES, "int32"), np.zeros(10, "int32")
    tir.build(func, target)(a, o, q, s)
    products, right = [int(x) * int(y) << max(s, 0) for x, y in zip(a, a[::-1])], q - min(s, 0)
    assert o.tolist() == [((p + (1 << right >> 1) >> right) + 2**31) % 2**32 - 2**31 for p in products]
