"""The intrinsics of a CPU and of bytes by name, the table of dot products, and the registry."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.interp.arguments import evaluate
from tir.interp.numbers import decode_table, storage_dtype
from tir.intrin import TensorIntrin, dot_products, x86
from tir.intrin.dot_products import DotProduct
from tir.testing.oracle import random_inputs
from tir.visit import walk

TILES = {
    "bf16": ("bfloat16", "bfloat16", "float32", 2), "us": ("uint8", "int8", "int32", 4), "ss": ("int8", "int8", "int32", 4),
    "su": ("int8", "uint8", "int32", 4), "uu": ("uint8", "uint8", "int32", 4),
}  # fmt: skip


def declared(name: str) -> list[tuple]:
    """What both functions of an intrinsic declare of each buffer."""
    both = [
        [(tuple(map(int, b.shape)), str(b.dtype), b.scope, b.offset_factor, len(b.strides)) for b in func.buffers()]
        for func in (TensorIntrin.get(name).desc, TensorIntrin.get(name).impl)
    ]
    assert both[0] == both[1]
    return both[0]


def number_of_a_tile(name: str, place: int, buffer: tir.Buffer) -> None:
    """An argument of the call is the number of a tile: they lie one after another."""
    call = next(n for n in walk(TensorIntrin.get(name).impl.body) if isinstance(n, tir.Call) and "amx" in n.op)
    elements = int(np.prod(list(map(int, buffer.shape))))
    assert buffer.offset_factor == elements
    assert [evaluate(call.args[place], {buffer.elem_offset: n * elements}) for n in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("op", "dtype", "group"), [
    *((op, dtype, group) for op in ("load", "stream") for dtype, group in (("bfloat16", 2), ("uint8", 4), ("int8", 4))),
    *((op, dtype, 1) for op in ("load", "store") for dtype in ("float32", "int32")),
])  # fmt: skip
def test_tiles_are_copied(op, dtype, group):
    name, shape = f"amx_{op}_{dtype}", (16, 16, group) if group > 1 else (16, 16)
    bits = DType(dtype).bits
    memory, tile = (shape, dtype, "global", 1, len(shape)), (shape, dtype, "amx.tile", 8192 // bits, 0)
    assert declared(name) == ([tile, memory] if op == "store" else [memory, tile])
    made = TensorIntrin.get(name)
    tile_at = made.impl.buffers()[0 if op == "store" else 1]
    number_of_a_tile(name, 1, tile_at)
    call = next(n for n in walk(made.impl.body) if isinstance(n, tir.Call) and "amx" in n.op)
    assert call.op.endswith(f"amx_tile_{op}")
    row = made.impl.buffers()[1 if op == "store" else 0].strides[0]
    assert evaluate(call.args[3], {row: 40}) == 40 * bits // 8  # bytes from row to row
    source, target = random_inputs(made.desc, 1), random_inputs(made.desc, 2)
    args = [source[0], target[1]]
    tir.interp.run(made.desc, *args)
    np.testing.assert_array_equal(args[1], source[0])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_tiles_are_zeroed(dtype):
    assert declared(f"amx_zero_{dtype}") == [((16, 16), dtype, "amx.tile", 256, 0)]
    made, sums = TensorIntrin.get(f"amx_zero_{dtype}"), np.ones((16, 16), dtype)
    number_of_a_tile(f"amx_zero_{dtype}", 1, made.impl.buffers()[0])
    tir.interp.run(made.desc, sums)
    assert not sums.any()


@pytest.mark.parametrize("kind", TILES)
def test_tiles_are_multiplied(kind):
    left, right, out, group = TILES[kind]
    name, elements = f"amx_dot_{kind}", 256 * group
    shape = (16, 16, group)
    assert declared(name) == [
        (shape, left, "amx.tile", elements, 0), (shape, right, "amx.tile", elements, 0), ((16, 16), out, "amx.tile", 256, 0),
    ]  # fmt: skip
    made = TensorIntrin.get(name)
    for place, buffer in ((2, 2), (4, 0), (6, 1)):
        number_of_a_tile(name, place, made.impl.buffers()[buffer])
    a, b, c = random_inputs(made.desc, 0)
    values = [decode_table(DType("bfloat16"))[x] if kind == "bf16" else x.astype("int64") for x in (a, b)]
    want = c + np.einsum("ikq,kjq->ij", *values)
    tir.interp.run(made.desc, a, b, c)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("kinds", ["s8s8s32", "s8u8s32", "u8s8s32", "u8u8u32"])
def test_four_products_of_bytes(kinds):
    left, right, out = ({"s": "", "u": "u"}[k[0]] + f"int{k[1:]}" for k in re.findall(r"[su]\d+", kinds))
    made = TensorIntrin.get(f"dp4a_{kinds}")
    assert declared(f"dp4a_{kinds}") == [
        ((4,), left, "shared", 1, 0), ((4,), right, "shared", 1, 0), ((1,), out, "local", 1, 0),
    ]  # fmt: skip
    assert {b.data_alignment for func in (made.desc, made.impl) for b in func.buffers()} == {4}
    rng = np.random.default_rng(0)
    info = [np.iinfo(t) for t in (left, right)]
    a, b = (rng.integers(i.min, i.max, 4, i.dtype, endpoint=True) for i in info)
    for func in (made.desc, made.impl):
        c = np.array([7], out)
        tir.interp.run(func, a, b, c)
        assert c[0] == 7 + (a.astype("int64") * b.astype("int64")).sum()


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("group", "kind", "types"), [(4, "vnni", ("uint8", "int8", "int32")), (2, "bf16", ("bfloat16", "bfloat16", "float32"))])  # fmt: skip
def test_dot_products_of_vectors(lanes, group, kind, types):
    name = f"dot_{lanes}x{group}_{kind}"
    shapes = [(group,), (lanes, group), (lanes,)]
    assert declared(name) == [(shape, dtype, "global", 1, 0) for shape, dtype in zip(shapes, types)]
    a, b, c = random_inputs(TensorIntrin.get(name).desc, 0)
    values = [decode_table(DType("bfloat16"))[x] if kind == "bf16" else x.astype("int64") for x in (a, b)]
    want = c + values[1] @ values[0]
    tir.interp.run(TensorIntrin.get(name).desc, a, b, c)
    np.testing.assert_array_equal(c, want)
    call = next(n for n in walk(TensorIntrin.get(name).impl.body) if isinstance(n, tir.Call) and "llvm" in n.op)
    instruction = "vpdpbusd" if kind == "vnni" else "dpbf16ps"
    assert f"{instruction}.{lanes * 32}" in str(call) and call.dtype == DType(f"{types[2]}x{lanes}")


@pytest.mark.parametrize(("group", "dtype"), [(4, "int8"), (4, "uint8"), (2, "int16"), (2, "bfloat16")])
def test_rows_are_interleaved(group, dtype):
    name = f"interleave_16x{group}_{'bf16' if dtype == 'bfloat16' else dtype}"
    made = TensorIntrin.get(name)
    assert [tuple(map(int, b.shape)) for b in made.impl.buffers()] == [(group, 16), (16, group)]
    rows = np.arange(group * 16).astype(storage_dtype(DType(dtype))).reshape(group, 16)
    out = np.zeros((16, group), rows.dtype)
    tir.interp.run(made.desc, rows, out)
    np.testing.assert_array_equal(out, rows.T)


@pytest.mark.parametrize("dtype", x86.TRANSPOSE)
def test_squares_are_transposed(dtype):
    side, name = x86.TRANSPOSE[dtype]
    assert side == min(16, 512 // DType(dtype).bits)
    assert name == f"transpose_{side}x{side}" + f"_{dtype}" * (dtype != "float32")
    made = TensorIntrin.get(name)
    square = np.arange(side * (side + 3)).astype(storage_dtype(DType(dtype))).reshape(side, side + 3)[:, :side]
    for func, given in ((made.desc, square.copy()), (made.impl, square)):
        out = np.zeros((side, side), square.dtype)
        tir.interp.run(func, given, out)
        np.testing.assert_array_equal(out, square.T)


def test_the_types_that_are_transposed_in_registers():
    widths = [f"{code}int{bits}" for code in ("", "u") for bits in (8, 16, 32, 64)]
    assert [*x86.TRANSPOSE] == ["float32", *widths, "float16", "bfloat16", "float64"]


def test_the_table_of_dot_products():
    assert dot_products.LANES == 16
    for kind, (left, right, sums, group) in TILES.items():
        found = DotProduct.of(DType(left), DType(right), DType(sums))
        assert (found.left, found.right, found.sums, found.group, found.tiles) == (left, right, sums, group, kind)
        assert found.tile_feature == ("amx-bf16" if kind == "bf16" else "amx-int8")
        assert found.vector_feature == ("avx512bf16" if kind == "bf16" else "avx512vnni")
        others = f"dot_16x4_vnni_{left}_{right}"
        assert found.vector == {"bf16": "dot_16x2_bf16", "us": "dot_16x4_vnni"}.get(kind, others)
        assert found.interleave == f"interleave_16x{group}_{'bf16' if kind == 'bf16' else right}"
    assert DotProduct.of(DType("uint8"), DType("int8"), DType("int64")) is None
    words = DotProduct.of(DType("int16"), DType("int16"), DType("int32"))
    assert words is not None and (words.group, words.vector, words.tile_feature) == (2, "dot_16x2_vnni_int16", "")


@pytest.mark.parametrize(
    "types", [("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8"), ("int16", "int16")], ids="-".join
)
def test_dot_products_of_other_signs(types):
    name = x86.VNNI_INT16 if "16" in types[0] else x86.VNNI[types]
    a, b, c = random_inputs(TensorIntrin.get(name).desc, 0)
    assert (a.dtype, b.dtype) == types
    want = c + b.astype("int64") @ a.astype("int64")
    tir.interp.run(TensorIntrin.get(name).desc, a, b, c)
    np.testing.assert_array_equal(c, want)


# ---------------------------------------------------------------- the registry


@pytest.fixture
def empty(monkeypatch):
    TensorIntrin.list()
    monkeypatch.setattr(TensorIntrin, "_registry", {})
    monkeypatch.setattr(TensorIntrin, "_makers", {})


def test_a_name_is_taken_once(empty):
    zero = tir.script.parse("@T.prim_func\ndef f(C: T.Buffer((4,), 'int32')):\n    T.evaluate(0)")
    one = TensorIntrin.register("one", zero, zero)
    assert TensorIntrin.get("one") is one and one.name == "one" and one.as_python() == 'TensorIntrin.get("one")'
    assert TensorIntrin(zero, zero).as_python() == "TensorIntrin(…)"
    made = []
    TensorIntrin.register_lazy("two", lambda: made.append(1) or (zero, zero))
    assert TensorIntrin.list() == ["one", "two"] and made == []
    assert TensorIntrin.get("two") is TensorIntrin.get("two") and made == [1]
    TensorIntrin.register_lazy("three", lambda: (zero, zero))
    for name in ("one", "two", "three"):
        said = f"^tensor intrinsic '{name}' is already registered"
        with pytest.raises(ValueError, match=f"{said}; pass override=True to replace it$"):
            TensorIntrin.register(name, zero, zero)
        with pytest.raises(ValueError, match=f"{said}$"):
            TensorIntrin.register_lazy(name, lambda: (zero, zero))
    for name in ("one", "three", "four"):
        assert TensorIntrin.register(name, zero, zero, override=True) is TensorIntrin.get(name)
    assert TensorIntrin.get("five", allow_missing=True) is None
    with pytest.raises(KeyError, match=r"no tensor intrinsic 'tree'; did you mean three\?"):
        TensorIntrin.get("tree")
    with pytest.raises(
        KeyError, match=r"no tensor intrinsic 'xyzzy'; TensorIntrin.list\(\) has four_…, one_…, three_…, two_…"
    ):
        TensorIntrin.get("xyzzy")


def test_both_functions_take_the_same_buffers():
    def func(*buffers: str) -> tir.PrimFunc:
        named = ", ".join(f"{name}: T.Buffer({about})" for name, about in zip("AB", buffers))
        return tir.script.parse(f"@T.prim_func\ndef f({named}):\n    T.evaluate(0)")

    one = func("(4,), 'float32'")
    TensorIntrin(one, func("(5,), 'float32'"))
    for other, said in (
        (func("(4,), 'float16'"), "buffer A of desc is float32 of rank 1, A of impl float16 of rank 1"),
        (func("(4, 1), 'float32'"), "buffer A of desc is float32 of rank 1, A of impl float32 of rank 2"),
        (func("(4,), 'float32'", "(4,), 'float32'"), "desc takes 1 buffers, impl 2; they must agree"),
    ):
        with pytest.raises(ValueError, match=f"^{said}$"):
            TensorIntrin(one, other)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("VNNI_512", "it is tir.intrin.x86.VNNI_512"),
        ("TensorIntrin_", None),
        ("_dot", None),
        ("WMMA_FILL_16x16x16_F32_INTRIN", None),
        ("no name", None),
    ],
)
def test_a_name_of_a_family_is_found_from_the_package(name, end):
    families = "the families are tir.intrin.amx, tir.intrin.cuda, tir.intrin.dot_product_common, tir.intrin.dot_products, tir.intrin.x86"
    with pytest.raises(AttributeError) as caught:
        getattr(tir.intrin, name)
    assert str(caught.value) == f"module 'tir.intrin' has no attribute {name!r}; {end or families}"
    assert tir.intrin.x86 is x86 and "cuda" in dir(tir.intrin)
