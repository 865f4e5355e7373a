"""Tensor intrinsics: the registry, and x86 dot products where the machine has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from prim_checks import schedule

import tir
from tir.intrin import TensorIntrin
from tir.script import parse
from tir.testing.oracle import random_inputs
from tir.visit import walk

GEMM = """
@T.prim_func
def main(A: T.Buffer((M, 64), "uint8"), B: T.Buffer((2, 16, 16, 4), "int8"), C: T.Buffer((M, 32), "int32")):
    for i, j, k in T.grid(M, 32, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj // 16, vk // 4, vj % 16, vk % 4], "int32")
"""


def has(flag: str) -> bool:
    info = Path("/proc/cpuinfo")
    return info.exists() and flag in info.read_text()


def vnni(m: int, lanes: int, name: str) -> tir.Schedule:
    text = GEMM.replace("M", str(m))
    if lanes != 16:
        text = text.replace("(2, 16, 16, 4)", f"({32 // lanes}, 16, {lanes}, 4)").replace("// 16", f"// {lanes}")
        text = text.replace("% 16", f"% {lanes}")
    sch = schedule(text)
    i, j, k = sch.get_loops("C")
    jo, ji = sch.split(j, [None, lanes])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(i, jo, ko, ji, ki)
    sch.decompose_reduction("C", ko)
    sch.tensorize(ji, name)
    return sch


def packed(b: np.ndarray, lanes: int) -> np.ndarray:
    return np.ascontiguousarray(b.reshape(16, 4, 32 // lanes, lanes).transpose(2, 0, 3, 1))


def test_registry() -> None:
    assert {"dot_16x4_vnni", "dot_8x4_vnni"} <= set(TensorIntrin.list())
    assert TensorIntrin.get("nothing like it", allow_missing=True) is None
    with pytest.raises(KeyError, match="list.. has .*dot_…, .*wmma_…"):
        TensorIntrin.get("nothing like it")


def test_register_twice() -> None:
    vector = TensorIntrin.get("dot_16x4_vnni")
    assert vector is not None
    with pytest.raises(ValueError, match="already registered; pass override=True"):
        TensorIntrin.register("dot_16x4_vnni", vector.desc, vector.impl)
    TensorIntrin.register("dot_16x4_vnni", vector.desc, vector.impl, override=True)


def test_signatures_must_agree() -> None:
    one = parse("@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    T.evaluate(0)")
    two = parse("@T.prim_func\ndef f(A: T.Buffer((4,), 'float16')):\n    T.evaluate(0)")
    with pytest.raises(ValueError, match="buffer A of desc is float32"):
        TensorIntrin(one, two)


def test_a_name_is_registered_once_lazily_or_not() -> None:
    vector = TensorIntrin.get("dot_16x4_avx512")
    for name in ("dot_16x4_avx512", "dot_16x4_vnni", "amx_zero_int32", "dp4a_s8s8s32"):
        with pytest.raises(ValueError, match="already registered"):
            TensorIntrin.register_lazy(name, lambda: (vector.desc, vector.impl))


OF_X86 = [name for name in TensorIntrin.list() if name.startswith(("dot_", "interleave_", "transpose_"))]


@pytest.mark.parametrize("name", OF_X86)
def test_an_instruction_of_x86_computes_what_it_describes(name: str) -> None:
    vector = TensorIntrin.get(name)
    feature = next((f"avx512_{kind}" for kind in ("vnni", "bf16") if name.startswith("dot_") and kind in name), None)
    if feature is not None and not has(feature):
        pytest.skip(f"needs {feature}")
    expected, buffers = random_inputs(vector.desc), vector.impl.buffers()
    # with gaps between rows, if it takes any strides
    given = [np.pad(a, ((0, 0), (0, 1)))[:, :-1] if b.strides else a.copy() for a, b in zip(expected, buffers)]
    tir.interp.run(vector.desc, *expected)
    assert any((a != b).any() for a, b in zip(given, expected))
    tir.build(vector.impl, "llvm")(*given)
    for a, b in zip(given, expected):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["dot_16x4_vnni", "dot_8x4_vnni", "dot_16x2_bf16", "dot_8x2_bf16"])
def test_round_trip(name: str) -> None:
    vector = TensorIntrin.get(name)
    assert vector is not None
    for func in (vector.desc, vector.impl):
        tir.assert_structural_equal(parse(func.script()), func)


@pytest.mark.parametrize("lanes", [16, 8])
def test_vnni_matmul(lanes: int) -> None:
    sch = vnni(5, lanes, f"dot_{lanes}x4_vnni")
    text = sch.script()
    assert "vpdpbusd" in text
    tir.assert_structural_equal(parse(text)["main"], sch.mod["main"])
    if not has("avx512_vnni"):
        return  # the instruction is compiled where it can run
    built = tir.build(sch.mod, target="llvm")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (5, 64)).astype("uint8")
    b = rng.integers(-128, 128, (64, 32)).astype("int8")
    c = np.zeros((5, 32), "int32")
    built(a, packed(b, lanes), c)
    np.testing.assert_array_equal(c, a.astype("int32") @ b.astype("int32"))


def test_bytes_without_vnni() -> None:
    sch = vnni(5, 16, "dot_16x4_avx512")
    rng = np.random.default_rng(0)
    a = rng.integers(200, 256, (5, 64)).astype("uint8")  # sums that an instruction of 16 bits would saturate
    b = rng.integers(-128, 128, (64, 32)).astype("int8")
    for target in ("llvm", "interpreter"):
        c = np.zeros((5, 32), "int32")
        tir.build(sch.mod, target=target)(a, packed(b, 16), c)
        np.testing.assert_array_equal(c, a.astype("int32") @ b.astype("int32"))


DP4A = """
@T.prim_func
def main(A: T.Buffer((8, 16), "LEFT"), B: T.Buffer((8, 16), "RIGHT"), C: T.Buffer((8, 8), "OUT")):
    for i, j, k in T.grid(8, 8, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.OUT(0)
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "OUT") * T.cast(B[vj, vk], "OUT")
"""


@pytest.mark.parametrize("types", ["s8 s8 s32", "s8 u8 s32", "u8 s8 s32", "u8 u8 u32"])
def test_dp4a(types: str) -> None:
    left, right, out = (t.replace("s", "int").replace("u", "uint") for t in types.split())
    sch = schedule(DP4A.replace("LEFT", left).replace("RIGHT", right).replace("OUT", out))
    local = sch.cache_write("C", 0, "local")
    i, j, k = sch.get_loops("C")
    ko, ki = sch.split(k, [None, 4])
    sch.bind(i, "threadIdx.y")
    sch.bind(j, "threadIdx.x")
    for operand in (0, 1):
        copy = sch.cache_read("C", operand, "shared")
        sch.compute_at(copy, ko)
    sch.reverse_compute_at(local, j)
    sch.decompose_reduction("C", ko)
    sch.tensorize(ki, f"dp4a_{types.replace(' ', '')}")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, (8, 16)).astype(t) for t in (left, right))
    for target in ("cuda-sim", "interpreter"):
        c = np.zeros((8, 8), out)
        module = tir.build(sch.mod, target=target)
        module(a, b, c)
        np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64).T).astype(out))
        assert target == "interpreter" or not module.last_report.findings
    assert "dp4a(" in tir.build(sch.mod, target="cuda -arch=sm_80").source("cuda")


def test_names_of_the_field() -> None:
    from tir.intrin import cuda, dot_product_common, x86

    constants = [
        "WMMA_LOAD_16x16x16_F16_B_TRANS_DYN_INTRIN",
        "WMMA_STORE_16x16x16_F32_SHARED_DYN_INTRIN",
        "WMMA_SYNC_16x16x16_s8s8s32_TRANS_INTRIN",
        "WMMA_FILL_16x16x16_S32_INTRIN",
        "LDMATRIX_i8_B_TRANS_INTRIN",
        "MMA_f16f16f32_TRANS_A_TRANS_B_INTRIN",
        "MMA_fill_16x16_f32_INTRIN",
        "MMA_store_16x16_f32_global_INTRIN",
        "MMA_store_16x16_f32_shared_dyn_INTRIN_SIMPLE",
    ]
    for constant in constants:
        assert TensorIntrin.get(getattr(cuda, constant)) is not None
    for name in (x86.VNNI_DOT_16x4_INTRIN, x86.AVX512_DOT_16x4_INTRIN, dot_product_common.DP4A_U8U8U32_INTRIN):
        assert TensorIntrin.get(name) is not None
    with pytest.raises(AttributeError, match="WMMA_LOAD_1x1x1"):
        _ = cuda.WMMA_LOAD_1x1x1_INTRIN


BF16 = """
@T.prim_func
def main(A: T.Buffer((5, 32), "bfloat16"), B: T.Buffer((2, 16, LANES, 2), "bfloat16"),
         C: T.Buffer((5, WIDTH), "float32")):
    for i, j, k in T.grid(5, WIDTH, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = (C[vi, vj] + T.cast(A[vi, vk], "float32")
                         * T.cast(B[vj // LANES, vk // 2, vj % LANES, vk % 2], "float32"))
"""


@pytest.mark.parametrize("lanes", [16, 8])
def test_bf16_matmul(lanes: int) -> None:
    sch = schedule(BF16.replace("LANES", str(lanes)).replace("WIDTH", str(2 * lanes)))
    i, j, k = sch.get_loops("C")
    jo, ji = sch.split(j, [None, lanes])
    ko, ki = sch.split(k, [None, 2])
    sch.reorder(i, jo, ko, ji, ki)
    sch.decompose_reduction("C", ko)
    sch.tensorize(ji, f"dot_{lanes}x2_bf16")
    tir.assert_structural_equal(parse(sch.script())["main"], sch.mod["main"])
    if not has("avx512_bf16"):
        return  # the instruction is compiled where it can run
    built = tir.build(sch.mod, target="llvm")
    rng = np.random.default_rng(0)

    def bf16(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        values = rng.integers(-16, 16, shape).astype("float32")
        return values, (values.view("uint32") >> 16).astype("uint16")

    a, a16 = bf16((5, 32))
    b, b16 = bf16((32, 2 * lanes))
    layout = b16.reshape(16, 2, 2, lanes).transpose(2, 0, 3, 1)
    c = np.zeros((5, 2 * lanes), "float32")
    built(a16, np.ascontiguousarray(layout), c)
    np.testing.assert_array_equal(c, a @ b)


_OVERRIDE = """
import tir
from tir.script import tir as T

@T.prim_func
def desc(c: T.handle):
    C = T.match_buffer(c, (16, 16), "float16", offset_factor=16, scope="wmma.accumulator")
    with T.block("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float16(0)

{first}
for name in ("wmma_fill_16x16x16_f16", "dot_16x4_vnni"):
    try:
        tir.TensorIntrin.register(name, desc, desc)
    except ValueError as error:
        assert "already registered; pass override=True" in str(error), error
    else:
        raise AssertionError(name)
    made = tir.TensorIntrin.register(name, desc, desc, override=True)
    assert tir.TensorIntrin.get(name) is made
assert tir.TensorIntrin.get("wmma_fill_16x16x16_f32") is not None
assert "wmma_fill_16x16x16_f16" in tir.TensorIntrin.list()
import tir.intrin.x86, tir.intrin.cuda
"""


@pytest.mark.parametrize("first", ["", "import tir.intrin.x86", "import tir.intrin.cuda", "tir.TensorIntrin.list()"])
def test_a_built_in_intrinsic_is_replaced_for_good(first, tmp_path) -> None:
    """In a process of its own: which family is loaded when is what the test is about."""
    script = tmp_path / "override.py"
    script.write_text(_OVERRIDE.format(first=first))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_calls_an_instruction_declares_the_regions_of_its_description() -> None:
    names = [
        name for name in TensorIntrin.list() if name.startswith(("dot_", "interleave_", "transpose_", "dp4a_", "amx_"))
    ]
    assert len(names) > 20
    for name in names:
        vector = TensorIntrin.get(name)
        assert vector is not None
        blocks = [next(n for n in walk(func.body) if isinstance(n, tir.Block)) for func in (vector.desc, vector.impl)]
        regions = [[sorted(map(str, side)) for side in (block.reads, block.writes)] for block in blocks]
        assert regions[0] == regions[1], name
