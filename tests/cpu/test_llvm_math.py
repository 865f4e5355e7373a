"""Elementary functions and data types in compiled code, against NumPy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tir
from codegen.build import compile_lowered
from codegen.llvm.expr import HARMLESS
from tir.buffer import decl_buffer
from tir.dtype import DType
from tir.expr import Broadcast, BufferLoad, Call, Cast, FloatImm, IntImm, Ramp, Select, Var
from tir.function import IRModule, PrimFunc
from tir.node import frozendict
from tir.op import OPS
from tir.script import parse
from tir.stmt import BufferStore, For


def unary(make, count: int, source: str, target: str, lanes: int = 1):
    """A compiled B[i] = make(A[i]) over ``count`` elements, ``lanes`` at a time."""
    a, b, i = Var("a", "handle"), Var("b", "handle"), Var("i")
    A, B = decl_buffer((count,), source, "A"), decl_buffer((count,), target, "B")
    index = i if lanes == 1 else Ramp(i * lanes, IntImm(1), lanes)
    body = For(i, IntImm(0), IntImm(count // lanes), "serial", BufferStore(B, make(BufferLoad(A, (index,))), (index,)))
    return compile_lowered(IRModule.of(PrimFunc((a, b), body, buffer_map=frozendict({a: A, b: B}))))


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units in the last place of float32 (subnormal results count their own spacing)."""
    finite = np.isfinite(want) & (np.abs(want) <= np.finfo(np.float32).max)
    spacing = np.spacing(np.abs(want[finite]).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - want[finite]) / spacing))


ERF = np.vectorize(math.erf)
FUNCTIONS = {
    "exp": (np.exp, -104, 88.7),
    "exp2": (np.exp2, -150, 128),
    "log": (np.log, 1e-45, 3e38),
    "log2": (np.log2, 1e-45, 3e38),
    "log10": (np.log10, 1e-45, 3e38),
    "tanh": (np.tanh, -12, 12),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80),
    "erf": (ERF, -5, 5),
    "erfc": (np.vectorize(math.erfc), -5, 9),
    "sin": (np.sin, -9e5, 9e5),
    "cos": (np.cos, -9e5, 9e5),
    "tan": (np.tan, -9e5, 9e5),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -50, 50),
    "expm1": (np.expm1, -20, 88.7),
    "log1p": (np.log1p, -0.9999, 1e3),
    "sinh": (np.sinh, -89.4, 89.4),
    "cosh": (np.cosh, -89.4, 89.4),
    "asinh": (np.arcsinh, -1e8, 1e8),
    "acosh": (np.arccosh, 1, 1e8),
    "atanh": (np.arctanh, -0.99999, 0.99999),
}


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_functions_are_accurate(name, lanes):
    want, low, high = FUNCTIONS[name]
    x = np.linspace(low, high, 1 << 15).astype(np.float32)
    is_log = name in ("log", "log2", "log10")
    if is_log:
        x = np.exp(np.linspace(-103, 88, 1 << 15)).astype(np.float32)
        x = np.maximum(x, np.float32(1e-45))
    near_zero = (np.geomspace(1e-30, 1, 1 << 14) * np.tile([1, -1], 1 << 13)).astype(np.float32)
    moderate = np.linspace(-8, 8, 1 << 14).astype(np.float32)
    x = np.concatenate(
        [x, np.abs(near_zero)] if is_log else [x, *(np.clip(v, low, high) for v in (near_zero, moderate))]
    )
    y = np.zeros_like(x)
    unary(lambda v: Call(name, (v,), v.dtype), len(x), "float32", "float32", lanes)(x, y)
    assert ulps(y, want(x.astype(np.float64))) <= (5 if name == "erfc" else 4)


@pytest.mark.parametrize("lanes", [8, 16])
def test_float32_functions_at_the_edges(lanes):
    x = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 200, -200, 1e-40, -1, 1, 3, -3, 89, -89, 90, 5], np.float32)
    with np.errstate(all="ignore"):
        for name, (want, _, _) in FUNCTIONS.items():
            y = np.zeros_like(x)
            unary(lambda v, name=name: Call(name, (v,), v.dtype), 16, "float32", "float32", lanes)(x, y)
            np.testing.assert_allclose(y, want(x.astype(np.float64)).astype(np.float32), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("least", [math.nan, -math.inf, -200.0, -87.0, 0.0, 3.0, math.inf])
@pytest.mark.parametrize("lanes", [1, 16])
def test_exp_of_what_is_no_number_below_a_limit(lanes, least):
    data = np.array(
        [-math.inf, -300, -150, -103, -88, -87, -86, -1e-3, 0, 1, 3, 4, 88, 90, math.inf, math.nan], "float32"
    )

    def chosen(x):
        limit, nothing = (FloatImm(value, "float32") for value in (least, -math.inf))
        if lanes > 1:
            limit, nothing = Broadcast(limit, lanes), Broadcast(nothing, lanes)
        return Call("exp", (Select(x < limit, nothing, x),), dtype=x.dtype)

    got = np.zeros(16, "float32")
    unary(chosen, 16, "float32", "float32", lanes)(data, got)
    with np.errstate(all="ignore"):
        want = np.exp(np.where(data < least, -np.inf, data.astype("float64"))).astype("float32")
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "tanh", "atanh", "sigmoid", "erf"])
def test_float32_functions_of_any_bits(name, lanes):
    """Subnormal numbers, both zeros, infinities and nan as they come, and the numbers around 1, of either sign."""
    rng = np.random.default_rng(0)
    bits = [
        rng.integers(0, 1 << 32, 1 << 12),
        rng.integers(0, 1 << 23, 1 << 10),
        rng.integers(0x3E000000, 0x40000000, 1 << 12),
    ]
    x = np.concatenate(bits).astype(np.uint32).view(np.float32)
    x[:6] = 0, np.inf, np.nan, np.finfo(np.float32).max, np.finfo(np.float32).tiny, 1
    x = np.concatenate([x, -x])
    y = np.zeros_like(x)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name][0](x.astype(np.float64))
        unary(lambda v: Call(name, (v,), v.dtype), len(x), "float32", "float32", lanes)(x, y)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
    np.testing.assert_array_equal(y[np.isinf(want)], want[np.isinf(want)])
    np.testing.assert_array_equal(np.signbit(y[want == 0]), np.signbit(want[want == 0]))
    assert ulps(y, want) <= 3
    assert name not in ("tanh", "erf") or np.nanmax(np.abs(y)) == 1


BINARY = {"pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot}


def binary(name: str, lanes: int):
    """A compiled C[i] = name(A[i], B[i])."""
    a, b, c, i = Var("a", "handle"), Var("b", "handle"), Var("c", "handle"), Var("i")

    def compiled(x, y):
        A, B, C = (decl_buffer((len(x),), "float32", n) for n in "ABC")
        at = (i if lanes == 1 else Ramp(i * lanes, IntImm(1), lanes),)
        value = Call(name, (BufferLoad(A, at), BufferLoad(B, at)), DType("float32").with_lanes(lanes))
        body = For(i, IntImm(0), IntImm(len(x) // lanes), "serial", BufferStore(C, value, at))
        func = PrimFunc((a, b, c), body, buffer_map=frozendict({a: A, b: B, c: C}))
        out = np.zeros_like(x)
        compile_lowered(IRModule.of(func))(x, y, out)
        return out

    return compiled


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", BINARY)
def test_float32_functions_of_two_operands(name, lanes):
    """Random operands near each other and far apart, and every pair of special ones."""
    rng = np.random.default_rng(0)
    size = 1 << 12
    special = np.array([np.nan, np.inf, 0, 1, 2, 0.5, 3, 1e-40, 3e38, 1e10, 2.5, 16777217], np.float32)
    pairs = [v.ravel() for v in np.meshgrid(*[np.concatenate([special, -special])] * 2)]
    drawn = [rng.uniform(-20, 20, size), rng.uniform(0.99, 1.01, size), rng.integers(-9, 9, size)]
    x = np.concatenate([pairs[0], *drawn, rng.uniform(-1e6, 1e6, size)]).astype(np.float32)
    y = np.concatenate([pairs[1], *(rng.permutation(d) for d in drawn[::-1]), rng.uniform(-3, 3, size)]).astype(
        np.float32
    )
    with np.errstate(all="ignore"):
        want = BINARY[name](x.astype(np.float64), y.astype(np.float64))
        got = binary(name, lanes)(x, y)
        rounded = want.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    infinite = np.isinf(rounded)
    np.testing.assert_array_equal(got[infinite], rounded[infinite])
    assert ulps(got, want) <= 4


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("around", [1e-6, 0.02, 0.4, None])
def test_powers_of_any_size(lanes, around):
    """Results from the least to the largest float32 and beyond, of bases near 1 and of any bits."""
    rng = np.random.default_rng(0)
    size = 1 << 14
    x = rng.integers(1, 0x7F800000, size).astype(np.uint32).view(np.float32)
    if around is not None:
        x = (1 + rng.uniform(-around, around, size)).astype(np.float32)
    x[x == 1] = 2
    y = (rng.uniform(-153, 129, size) / np.log2(x.astype(np.float64))).astype(np.float32)
    y[:8] = 3e38, -3e38, 1e30, -1e30, 1e-45, -1e-45, 0, -0.0
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        rounded = want.astype(np.float32)
    got = binary("pow", lanes)(x, y)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(rounded))
    assert ulps(got, want) <= 3


OTHERS = "sqrt rsqrt sin cos atan floor ceil trunc round nearbyint fabs exp2 log2 log1p cosh"


@pytest.mark.parametrize("name", OTHERS.split())
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_other_functions_follow_the_table(name, dtype):
    from tir.op import OPS

    x = np.linspace(0.05, 4.7, 64).astype(dtype)
    y = np.zeros_like(x)
    unary(lambda v: Call(name, (v,), v.dtype), 64, dtype, dtype, 8)(x, y)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y.astype(np.float64), OPS[name].numpy(x).astype(np.float64), rtol=4 * eps)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("target", ["int16", "int32", "int64", "float16", "float32", "float64", "bool"])
def test_casts_agree_with_numpy(source, target, lanes):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(64) * 50).astype(source)
    y = np.zeros(64, target)
    unary(lambda v: Cast(v.dtype if str(v.dtype) == target else _lanes(target, v), v), 64, source, target, lanes)(x, y)
    np.testing.assert_array_equal(y, x.astype(target))


def _lanes(name, v):
    from tir.dtype import DType

    return DType(name).with_lanes(v.dtype.lanes)


def test_float64_to_float16_rounds_once():
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11, 65519.999, 65520, 2**-25 + 2**-60, -1e-9, np.inf, np.nan])
    y = np.zeros(8, np.float16)
    unary(lambda v: Cast(_lanes("float16", v), v), 8, "float64", "float16", 8)(x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))


def test_bfloat16_rounds_to_nearest_even():
    x = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -(1 + 2**-8), 3.4e38, 1e-40, np.inf, 0.0], np.float32)
    y = np.zeros(8, np.uint16)
    unary(lambda v: Cast(_lanes("bfloat16", v), v), 8, "float32", "bfloat16", 8)(x, y)
    bits = x.view(np.uint32).astype(np.uint64)
    want = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("engine", ["interpreter", "llvm"])
def test_round_takes_halves_away_from_zero(engine, dtype):
    """And nothing else: not the number just below a half, nor one that has no room for a half."""
    below, odd = np.nextafter(np.asarray(0.5, dtype), np.asarray(0, dtype)), 2.0 ** (np.finfo(dtype).nmant) + 1
    values = np.array([0.5, 1.5, 2.5, below, odd, 0.0, np.inf, 1e30, 0.3], dtype)
    x, want = np.concatenate([values, -values]), np.array([1, 2, 3, 0, odd, 0, np.inf, 1e30, 0], dtype)
    func = tir.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((18,), "{dtype}"), B: T.Buffer((18,), "{dtype}")):
    for i in range(18):
        B[i] = T.round(A[i])
""")
    out = np.empty(18, dtype)
    tir.build(func, engine)(x, out)
    assert out.tolist() == [*want, *-want]


EXTREMES = {
    "float32": np.array(
        [0.0, -0.0, 1.0, -1.0, 1e-45, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 1e10, -1e10], "float32"
    ),
    "int32": np.array([0, 1, -1, 2**31 - 1, -(2**31), 31, 32, 33, -31, -32, 7, 2**30], "int32"),
}


@pytest.mark.parametrize("op", sorted(HARMLESS))
@pytest.mark.parametrize("loop", ["serial", "vectorized"])
def test_operators_that_are_evaluated_ahead_never_trap(op, loop):
    """Those of ``HARMLESS`` are computed where their value is not wanted: for every operand, also where the language
    says nothing about the result."""
    of_bits = op.startswith(("bitwise", "shift")) or op in ("clz", "popcount")
    for dtype in EXTREMES if op in ("abs", "likely", "reinterpret") else ["int32" if of_bits else "float32"]:
        values = EXTREMES[dtype]
        a, b = np.repeat(values, 12), np.tile(values, 12)
        given = ", ".join(["A[i]", "B[i]", "A[i]"][: OPS[op].arity])
        call = f"T.reinterpret({given}, dtype='uint32')" if op == "reinterpret" else f"T.{op}({given})"
        call = f"T.likely({given} > {given.replace('A', 'B')})" if op == "likely" else call
        func = parse(f"""
@T.prim_func
def f(A: T.Buffer((144,), "{dtype}"), B: T.Buffer((144,), "{dtype}"), C: T.Buffer((144,), "int32"), low: T.int32):
    for i in T.{loop}(144):
        if i >= low and T.Cast("bool", {call}):
            C[i] = 1
""")
        c = np.zeros(144, "int32")
        tir.build(func)(a, b, c, 144)
        assert not c.any()
        tir.build(func)(a, b, c, 0)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldexp(dtype: str, lanes: int):
    values = np.array([1.5, -3, 0, 0.1, np.inf, 7, -0.25, 1e30], dtype)
    for exponent in (3, -2, -140):
        module = unary(lambda x, n=exponent: Call("ldexp", (x, _splat(n, lanes)), x.dtype), 8, dtype, dtype, lanes)
        assert module.new(values).tolist() == np.ldexp(values, exponent).tolist()


def _splat(n: int, lanes: int):
    return IntImm(n) if lanes == 1 else Broadcast(IntImm(n), lanes)
