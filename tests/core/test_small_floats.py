"""The floats that NumPy lacks, as ml_dtypes has them: every value, and the rounding of every engine, judged by it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.errors import RunError
from tir.script import parse
from tir.script import tir as T
from tir.small_floats import SMALL_FLOATS

NAMES = sorted(SMALL_FLOATS)
ENGINES = ("interpreter", "llvm")
MAP = """
@T.prim_func
def f(A: T.Buffer(({n},), "{source}"), B: T.Buffer(({n},), "{target}")):
    for i in {loop}({n}):
        B[i] = {value}
"""
KERNEL = """
@T.prim_func
def f(A: T.Buffer(({n},), "{source}"), B: T.Buffer(({n},), "{target}")):
    for i in T.thread_binding({n}, thread="threadIdx.x"):
        B[i] = {value}
"""


def mapped(engine: str, source: str, target: str, x: np.ndarray, value: str = "", loop: str = "T.serial") -> np.ndarray:
    """``value``, of ``A[i]``, of each element of ``x``, as held in memory; without it a conversion."""
    text = KERNEL if engine == "cuda-sim" else MAP
    value = value or f'T.Cast("{target}", A[i])'
    func = parse(text.format(n=len(x), source=source, target=target, value=value, loop=loop))
    out = np.zeros(len(x), SMALL_FLOATS[target].storage if target in SMALL_FLOATS else target)
    tir.build(func, engine)(x, out)
    return out


def patterns(name: str) -> np.ndarray:
    small = SMALL_FLOATS[name]
    return np.arange(1 << small.bits, dtype=small.storage)


def assert_rounded(got: np.ndarray, x: np.ndarray, name: str) -> None:
    """Bits of ``x`` in float32 as ml_dtypes rounds it; the sign of a nan does not count."""
    small = SMALL_FLOATS[name]
    with np.errstate(all="ignore"):
        want = np.where(np.isnan(x), small.nan, x.astype(small.numpy).view(small.storage)).astype(small.storage)
    both_nan = np.isnan(got.view(small.numpy).astype("f4")) & np.isnan(want.view(small.numpy).astype("f4"))
    np.testing.assert_array_equal(got[~both_nan], want[~both_nan], err_msg=name)


def hard_numbers(name: str) -> np.ndarray:
    """float32: every value of the type, what lies half-way between two neighbours, beside both, and the ends of float32."""
    with np.errstate(all="ignore"):
        values = patterns(name)[:: 61 if name == "bfloat16" else 1].view(SMALL_FLOATS[name].numpy).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    between = (values[1:] / 2 + values[:-1] / 2).astype(np.float32)
    exact = np.concatenate([values, between, np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 3e38, 1e-45])])
    return np.concatenate([exact, *(np.nextafter(exact, np.float32(to)) for to in (-np.inf, np.inf))])


@pytest.mark.parametrize("engine", [*ENGINES, "cuda-sim"])
@pytest.mark.parametrize("name", [n for n in NAMES if n != "bfloat16"])
def test_every_pattern_has_the_value_that_ml_dtypes_gives_it(name: str, engine: str):
    x = patterns(name)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(mapped(engine, name, "float32", x), x.view(SMALL_FLOATS[name].numpy).astype("f4"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_rounded_as_ml_dtypes_rounds_them(name: str, engine: str):
    x = hard_numbers(name)
    assert_rounded(mapped(engine, "float32", name, x), x, name)


@pytest.mark.parametrize("name", NAMES)
def test_lanes_are_rounded_as_numbers_are(name: str):
    x = hard_numbers(name)
    x = np.resize(x, (len(x) + 15) // 16 * 16)
    func = parse(
        f"""
@T.prim_func
def f(A: T.Buffer(({len(x)},), "float32"), B: T.Buffer(({len(x)},), "{name}")):
    for i in range({len(x) // 16}):
        B[i * 16:i * 16 + 16] = T.Cast("{name}x16", A[i * 16:i * 16 + 16])
"""
    )
    got = np.zeros(len(x), SMALL_FLOATS[name].storage)
    tir.build(func)(x, got)
    assert_rounded(got, x, name)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [n for n in NAMES if SMALL_FLOATS[n].fraction])
def test_doubles_are_rounded_once(name: str, engine: str):
    """1 and a little more than half a unit: rounded to float32 first, it would be a tie, and become 1."""
    unit = 2.0 ** -SMALL_FLOATS[name].fraction
    x = np.array([1 + unit / 2 + 2**-40, 1 + unit / 2, 1 + 3 * unit / 2 - 2**-40])
    got = mapped(engine, "float64", name, x).view(SMALL_FLOATS[name].numpy)
    assert got.astype(float).tolist() == [1 + unit, 1, 1 + unit]


def next_numbers(name: str, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``x``, ``y`` and the number next to ``x`` on the way to ``y``: that is ``y`` where they are equal, its sign included."""
    dtype = SMALL_FLOATS[name].numpy if name in SMALL_FLOATS else np.dtype(name)
    word = f"uint{8 * dtype.itemsize}"
    codes = np.arange(1 << DType(name).bits, dtype=word)
    with np.errstate(all="ignore"):
        targets = np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.3, np.nan]).astype(dtype)
        x = np.resize(codes.view(dtype), 8 * len(codes))[::step].copy()
        y = np.repeat(targets, len(codes))[::step].copy()
        return x, y, np.where(x == y, y, np.nextafter(x, y))


def assert_same_numbers(got: np.ndarray, expected: np.ndarray) -> None:
    both_nan = np.isnan(got.astype("f4")) & np.isnan(expected.astype("f4"))
    word = f"uint{8 * got.itemsize}"
    np.testing.assert_array_equal(got.view(word)[~both_nan], expected.view(word)[~both_nan])


NEXT = """
@T.prim_func
def f(A: T.Buffer(({n},), "{name}"), B: T.Buffer(({n},), "{name}"), C: T.Buffer(({n},), "{name}")):
    for i in {loop}({n}{thread}):
        {statement}
"""


@pytest.mark.parametrize("engine", [*ENGINES, "cuda-sim"])
@pytest.mark.parametrize("name", ["float16", *NAMES])
def test_the_next_number_is_one_of_the_type(name: str, engine: str):
    """Not that of float32, which is rounded back to the number itself."""
    step = 1 if engine == "llvm" or DType(name).bits <= 8 else 67
    x, y, expected = next_numbers(name, step)
    kernel = engine == "cuda-sim"
    loop, thread = ("T.thread_binding", ', thread="blockIdx.x"') if kernel else ("range", "")
    text = NEXT.format(n=len(x), name=name, loop=loop, thread=thread, statement="C[i] = T.nextafter(A[i], B[i])")
    got = np.zeros_like(x)
    tir.build(parse(text), engine)(x, y, got)
    assert_same_numbers(got, expected)


@pytest.mark.parametrize("name", ["float16", *NAMES])
def test_the_next_numbers_of_lanes_are_those_of_numbers(name: str):
    x, y, expected = (v[: len(v) // 16 * 16] for v in next_numbers(name, 1))
    lanes = "{0}[i * 16:i * 16 + 16]".format
    statement = f"{lanes('C')} = T.nextafter({lanes('A')}, {lanes('B')})"
    text = NEXT.format(n=len(x), name=name, loop="range", thread="", statement=statement)
    text = text.replace(f"range({len(x)})", f"range({len(x) // 16})")
    got = np.zeros_like(x)
    tir.build(parse(text), "llvm")(x, y, got)
    assert_same_numbers(got, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_sums_of_all_sixteen_values_of_float4(engine: str):
    codes = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((16,), "float4_e2m1fn"), B: T.Buffer((16, 16), "float4_e2m1fn"), C: T.Buffer((16, 16), "bool")):
    for i, j in T.grid(16, 16):
        B[i, j] = A[i] * A[j] + A[i]
        C[i, j] = A[i] < A[j]
"""
    )
    sums, less = tir.build(func, engine).new(codes)
    assert sums.dtype == ml_dtypes.float4_e2m1fn
    wide = codes.astype(np.float32)
    products = np.multiply.outer(wide, wide).astype(sums.dtype).astype(np.float32)
    np.testing.assert_array_equal(sums.astype("f4"), (products + wide[:, None]).astype(sums.dtype).astype("f4"))
    np.testing.assert_array_equal(less, wide[:, None] < wide)


@pytest.mark.parametrize("name", NAMES)
def test_a_type_of_ml_dtypes_is_one_of_the_dialect(name: str):
    dtype, about = DType(name), ml_dtypes.finfo(name)
    assert (dtype, dtype.bits, dtype.max_value, dtype.digits) == (name, about.bits, float(about.max), about.nmant + 1)
    assert dtype.represents(float(about.smallest_subnormal)) and not dtype.represents(
        float(about.smallest_subnormal) * 1.5
    )
    assert DType(f"{name}x4").element is dtype
    assert str(getattr(T, name)(1.0)) == f"T.{name}(1)" and repr(getattr(T, f"{name}x4")).endswith(f"{name}x4")
    func = parse(MAP.format(n=4, source=name, target=name, value=f"A[i] + T.{name}(1.0)", loop="T.serial"))
    assert tir.structural_equal(parse(func.script()), func)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*NAMES, "int2", "uint2", "int4", "uint4"])
def test_arrays_of_ml_dtypes_come_and_go(name: str, engine: str):
    module = tir.build(parse(MAP.format(n=4, source=name, target=name, value="A[i]", loop="T.serial")), engine)
    x = np.array([1, 0, 1, 1] if name.endswith("int2") else [1, 2, 4, 1]).astype(getattr(ml_dtypes, name))
    made = module.new(x)
    assert made.dtype == x.dtype and made.tolist() == x.tolist()
    out = np.zeros(4, np.uint8 if name != "bfloat16" else np.uint16)
    if name not in ("int2", "int4"):
        module(x, out)
        assert out.view(x.dtype).tolist() == x.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_scalars_of_ml_dtypes_are_numbers(engine: str):
    func = parse(
        """
@T.prim_func
def f(B: T.Buffer((1,), "float8_e5m2"), x: T.float8_e5m2):
    B[0] = x
"""
    )
    assert float(tir.build(func, engine).new(ml_dtypes.float8_e5m2(1.75))[0]) == 1.75


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sibling_is_refused_by_name(engine: str):
    module = tir.build(
        parse(MAP.format(n=4, source="float8_e4m3", target="float8_e4m3", value="A[i]", loop="T.serial")), engine
    )
    fine = np.zeros(4, ml_dtypes.float8_e4m3)
    with pytest.raises(RunError, match=r"expected dtype float8_e4m3 \(held as uint8\), got float8_e4m3fn"):
        module(np.zeros(4, ml_dtypes.float8_e4m3fn), fine)


def test_misspelled_types_are_answered_with_those_that_are_meant():
    with pytest.raises(ValueError, match="unknown data type 'float8_e4m3fm'.*did you mean float8_e4m3"):
        DType("float8_e4m3fm")
    with pytest.raises(ValueError, match=r"constant 7.* does not fit float4_e2m1fn \(at most 6\)"):
        T.float4_e2m1fn(7.5)
    with pytest.raises(ValueError, match="constant 0 does not fit float8_e8m0fnu"):
        T.float8_e8m0fnu(0)


HOST = r"""
#include <cstring>
#include <cmath>
#include <cfenv>
static unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
static float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
static int __float2int_rn(float x) { return (int)lrintf(x); }
static float __fdiv_rn(float a, float b) { return a / b; }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ for the text of the CUDA helpers")
def test_the_helpers_of_cuda_agree_with_ml_dtypes(tmp_path):
    """The arithmetic that CUDA sources hold, compiled for the host; two types saturate, as the GPU's instructions do."""
    from codegen.cuda.ops import next_after
    from codegen.cuda.prelude import prelude

    names = [n for n in NAMES if n != "bfloat16"]
    exported = "".join(
        f'extern "C" void narrow_{n}(const float* x, unsigned char* y, int n) {{ for (int i = 0; i < n; ++i) y[i] = {n}(x[i]).bits; }}\n'
        f'extern "C" void widen_{n}(const unsigned char* x, float* y, int n) {{ for (int i = 0; i < n; ++i) y[i] = {n}::of_bits(x[i]); }}\n'
        f'extern "C" void next_{n}(const unsigned char* x, const unsigned char* y, unsigned char* z, int n) '
        f"{{ for (int i = 0; i < n; ++i) z[i] = {next_after(DType(n))}({n}::of_bits(x[i]), {n}::of_bits(y[i])).bits; }}\n"
        for n in names
    )
    source = (HOST + prelude([*names, "next_after"]) + exported).replace("__device__ __forceinline__", "inline")
    (tmp_path / "helpers.cpp").write_text(source)
    done = subprocess.run(
        ["g++", "-O1", "-std=c++17", "-shared", "-fPIC", "helpers.cpp", "-o", "helpers.so"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(tmp_path / "helpers.so"))
    for name in names:
        small = SMALL_FLOATS[name]
        x = hard_numbers(name)
        if name in ("float8_e4m3fn", "float8_e5m2"):
            x = x[np.isnan(x) | (np.abs(x) <= DType(name).max_value)]
        got = np.zeros(len(x), np.uint8)
        library[f"narrow_{name}"](x.ctypes.data_as(ctypes.c_void_p), got.ctypes.data_as(ctypes.c_void_p), len(x))
        assert_rounded(got, x, name)
        codes = patterns(name)
        wide = np.zeros(len(codes), np.float32)
        library[f"widen_{name}"](
            codes.ctypes.data_as(ctypes.c_void_p), wide.ctypes.data_as(ctypes.c_void_p), len(codes)
        )
        np.testing.assert_array_equal(wide, codes.view(small.numpy).astype(np.float32), err_msg=name)
        x, y, expected = next_numbers(name, 1)
        made = np.zeros_like(x)
        library[f"next_{name}"](*(a.ctypes.data_as(ctypes.c_void_p) for a in (x, y, made)), len(x))
        assert_same_numbers(made, expected)
