"""Tensor-core intrinsics: what the names describe is what the instructions do (on the simulator), and NVRTC takes them."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.cuda.matrix import Fragment
from tests.cuda.test_cuda_codegen import compiled
from tir.dtype import DType
from tir.interp.numbers import encode
from tir.intrin.cuda import get_mma_intrin_group, get_wmma_intrin_group
from tir.script import parse

CASES = [
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("int8", "int32"),
    ("float32", "float32"),
    ("float16", "float16"),
]


def matmul(kind: str, out: str, trans: bool) -> tir.PrimFunc:
    return parse(f"""
@T.prim_func
def main(A: T.Buffer((32, 32), "{kind}"), B: T.Buffer((32, 32), "{kind}"), C: T.Buffer((32, 32), "{out}")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{out}(0)
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "{out}") * T.cast(B[{"vj, vk" if trans else "vk, vj"}], "{out}")
""")


def wmma_schedule(kind: str, out: str, trans: bool) -> tir.Schedule:
    names = get_wmma_intrin_group("shared", "shared", kind, out, trans)
    sch = tir.Schedule(matmul(kind, out, trans))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 16])
    jo, ji = sch.split(j, [None, 16])
    ko, ki = sch.split(k, [None, 8 if kind == "float32" else 16])
    sch.reorder(io, jo, ko, ii, ji, ki)
    sch.bind(io, "blockIdx.x")
    sch.bind(jo, "blockIdx.y")
    stored = sch.cache_write(block, 0, "shared")
    summed = sch.cache_write(block, 0, "wmma.accumulator")
    sch.reverse_compute_at(summed, jo)
    sch.reverse_compute_at(stored, jo)
    fragments, copies = [], [stored]
    for n, operand in ((0, "a"), (1, "b")):
        shared = sch.cache_read(block, n, "shared")
        fragment = sch.cache_read(block, n, f"wmma.matrix_{operand}")
        sch.compute_at(fragment, ko)
        sch.compute_at(shared, ko)
        fragments.append(fragment)
        copies.append(shared)
    for copy in copies:
        _, lane = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 32])
        sch.bind(lane, "threadIdx.x")
    init = sch.decompose_reduction(block, ko)
    sch.tensorize(sch.get_loops(init)[-2], names["init"])
    for fragment, operand in zip(fragments, "ab"):
        sch.tensorize(sch.get_loops(fragment)[-2], names[f"load_{operand}"])
    sch.tensorize(sch.get_loops(summed)[-2], names["store"])
    sch.tensorize(ii, names["compute"])
    return sch


def mma_schedule(kind: str, out: str, trans: bool) -> tir.Schedule:
    names = get_mma_intrin_group("shared", "global", kind, out, trans_b=trans)
    depth = names["micro_kernel"][2]
    sch = tir.Schedule(matmul(kind, out, trans))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 16])
    jo, ji = sch.split(j, [None, 16])
    ko, ki = sch.split(k, [None, depth])
    sch.reorder(io, jo, ko, ii, ji, ki)
    sch.bind(io, "blockIdx.x")
    sch.bind(jo, "blockIdx.y")
    summed = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(summed, jo)
    held = []
    for n in (0, 1):
        shared = sch.cache_read(block, n, "shared")
        registers = sch.cache_read(block, n, "warp")
        sch.compute_at(registers, ko)
        sch.compute_at(shared, ko)
        _, lane = sch.split(sch.fuse(*sch.get_loops(shared)[-2:]), [None, 32])
        sch.bind(lane, "threadIdx.x")
        held.append(registers)

    def tiled(layout, rows: int, columns: int):
        return lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns))

    sch.transform_layout(held[0], ("write", 0), tiled(names["layout_a"], 16, depth))
    sch.transform_layout(held[1], ("write", 0), tiled(names["layout_b"], *((16, depth) if trans else (depth, 16))))
    sch.transform_layout(summed, ("read", 0), tiled(names["layout_c"], 16, 16))
    init = sch.decompose_reduction(block, ko)
    for part, name in ((init, "init"), (held[0], "load_a"), (held[1], "load_b"), (summed, "store")):
        sch.tensorize(sch.get_loops(part)[-2], names[name])
    sch.tensorize(ii, names["compute"])
    return sch


MMA = [
    ("float16", "float32", False),
    ("float16", "float32", True),
    ("float16", "float16", False),
    ("bfloat16", "float32", False),
    ("int8", "int32", True),
    ("float32", "float32", True),
]


@pytest.mark.parametrize(("kind", "out", "trans"), MMA)
def test_mma(kind: str, out: str, trans: bool):
    sch = mma_schedule(kind, out, trans)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (32, 32)), rng.integers(-3, 4, (32, 32))
    c = np.zeros((32, 32), out)
    tir.build(sch.mod, target="cuda-sim")(stored(a, kind), stored(b, kind), c)
    np.testing.assert_array_equal(c, a @ (b.T if trans else b))
    for arch in ("sm_80", "sm_90a"):
        mod = tir.build(sch.mod, target=f"cuda -arch={arch}")
        assert "mma.sync.aligned.m16n8k" in mod.source("cuda") and "_of_warps" not in mod.source("cuda")
        assert all(row.spills == 0 and row.stack == 0 for row in mod.report())


def test_mma_of_float8_needs_sm_89():
    sch = mma_schedule("float8_e4m3fn", "float32", True)
    assert "e4m3.e4m3.f32" in tir.build(sch.mod, target="cuda -arch=sm_90a").source("cuda")
    with pytest.raises(tir.BuildError, match="sm_89"):
        tir.build(sch.mod, target="cuda -arch=sm_80")


def stored(x: np.ndarray, kind: str) -> np.ndarray:
    return encode(x.astype(float), DType(kind)).astype("uint16") if kind == "bfloat16" else x.astype(kind)


@pytest.mark.parametrize("trans", [False, True], ids=["rows", "transposed"])
@pytest.mark.parametrize(("kind", "out"), CASES)
def test_wmma(kind: str, out: str, trans: bool):
    sch = wmma_schedule(kind, out, trans)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (32, 32)), rng.integers(-3, 4, (32, 32))
    c = np.zeros((32, 32), out)
    tir.build(sch.mod, target="cuda-sim")(stored(a, kind), stored(b, kind), c)
    np.testing.assert_array_equal(c, a @ (b.T if trans else b))
    for arch in ("sm_80", "sm_90a"):
        mod = tir.build(sch.mod, target=f"cuda -arch={arch}")
        assert "wmma.mma.sync" in mod.source("cuda")
        assert all(row.spills == 0 for row in mod.report())


@pytest.mark.parametrize(
    ("ptx", "dtype", "shape", "a", "b", "c"),
    [  # as the PTX ISA lists them: "Matrix fragments for WMMA"
        ("f16", "float16", (16, 16, 16), 8, 8, 8),
        ("f16", "float16", (32, 8, 16), 8, 8, 8),
        ("f16", "float16", (8, 32, 16), 8, 8, 8),
        ("bf16", "bfloat16", (16, 16, 16), 4, 4, 8),
        ("bf16", "bfloat16", (32, 8, 16), 8, 2, 8),
        ("bf16", "bfloat16", (8, 32, 16), 2, 8, 8),
        ("s8", "int8", (16, 16, 16), 2, 2, 8),
        ("u8", "uint8", (32, 8, 16), 4, 1, 8),
        ("s8", "int8", (8, 32, 16), 1, 4, 8),
        ("tf32", "float32", (16, 16, 8), 4, 4, 8),
        ("f64", "float64", (8, 8, 4), 1, 1, 2),
    ],
)
def test_the_registers_of_a_fragment(ptx, dtype, shape, a, b, c):
    wide = {"f64": "f64", "s8": "s32", "u8": "s32"}.get(ptx, "f32")
    assert [Fragment(role, *shape, DType(dtype), ptx).registers for role in "ab"] == [a, b]
    assert Fragment("c", *shape, DType(dtype), wide).registers == c
    assert Fragment("c", 16, 16, 16, DType("float16"), "f16").registers == 4


PRODUCT = """
def f(A: T.Buffer(({a},), "{kind}"), B: T.Buffer(({b},), "{kind}"), C: T.Buffer(({c},), "{out}")):
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.allocate([{a}], "{kind}", "wmma.matrix_a")
    b = T.allocate([{b}], "{kind}", "wmma.matrix_b")
    c = T.allocate([{c}], "{out}", "wmma.accumulator")
    T.tvm_fill_fragment(c, {m}, {n}, {k}, 0, T.{out}(0), dtype="handle")
    T.tvm_load_matrix_sync(a, {m}, {n}, {k}, 0, T.address_of(A[0]), {k}, "row_major", dtype="handle")
    T.tvm_load_matrix_sync(b, {m}, {n}, {k}, 0, T.address_of(B[0]), {n}, "row_major", dtype="handle")
    T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0, dtype="handle")
    T.tvm_store_matrix_sync(c, {m}, {n}, {k}, 0, T.address_of(C[0]), {n}, "row_major", dtype="handle")
"""


def product(kind: str, out: str, m: int, n: int, k: int) -> str:
    return PRODUCT.format(kind=kind, out=out, m=m, n=n, k=k, a=m * k, b=k * n, c=m * n)


@pytest.mark.parametrize(
    ("kind", "out", "shapes"),
    [  # as the PTX ISA lists them
        *((kind, "float32", [(16, 16, 16), (32, 8, 16), (8, 32, 16)]) for kind in ("float16", "bfloat16")),
        *((kind, "int32", [(16, 16, 16), (32, 8, 16), (8, 32, 16)]) for kind in ("int8", "uint8")),
        ("float32", "float32", [(16, 16, 8)]),
        ("float64", "float64", [(8, 8, 4)]),
    ],
)
def test_the_shapes_of_products_of_fragments(kind, out, shapes):
    for shape in shapes:
        assert "wmma.mma.sync.aligned.row.row.m{}n{}k{}.".format(*shape) in compiled(product(kind, out, *shape))
    with pytest.raises(tir.BuildError) as caught:
        compiled(product(kind, out, 16, 8, 4))
    assert f"has no shape m16n8k4 of {kind}; it has " in str(caught.value)
    assert str(caught.value).endswith(", ".join("m{}n{}k{}".format(*shape) for shape in shapes))


@pytest.mark.parametrize("name", ["mma_store_16x16_f32_global_", "mma_store_16x16_f32_global_simple_"])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_sums_are_stored_at_any_place_of_a_matrix(name: str, column: int):
    lane, element = "4 * (vi % 8) + vj % 8 // 2", "4 * (vj // 8) + 2 * (vi // 8) + vj % 2"
    func = parse(f"""
@T.prim_func
def main(X: T.Buffer((32, 8), "float32"), C: T.Buffer((16, 19), "float32")):
    A = T.alloc_buffer((32, 8), "float32", scope="warp")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for l in T.thread_binding(32, thread="threadIdx.x"):
            for e in range(8):
                with T.block("fill"):
                    vl, ve = T.axis.remap("SS", [l, e])
                    A[vl, ve] = X[vl, ve]
        for i, j in T.grid(16, 16):
            with T.block("store"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj + {column}] = A[{lane}, {element}]
""")
    sch = tir.Schedule(func)
    sch.tensorize(sch.get_loops("store")[-2], name)
    x, want, got = np.random.default_rng(0).random((32, 8), "float32"), *np.zeros((2, 16, 19), "float32")
    tir.interp.run(func, x, want)
    tir.build(sch.mod, target="cuda-sim")(x, got)
    np.testing.assert_array_equal(got, want)
