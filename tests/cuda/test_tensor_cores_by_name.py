"""Each intrinsic of tensor cores is what its name says: buffers, what it computes, which fragment it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tir
from tir.dtype import DType
from tir.interp.arguments import evaluate
from tir.interp.named_arguments import aligned_zeros
from tir.interp.numbers import decode_table, encode, is_small_float, storage_dtype
from tir.intrin import TensorIntrin, cuda
from tir.intrin.cuda import get_mma_intrin_group, get_wmma_intrin_group, layout_a, layout_b
from tir.visit import walk

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "s8": "int8", "i8": "int8", "s32": "int32",
    "i32": "int32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
WMMA = {
    "f16": ("16x16x16", "f32 f16"),
    "bf16": ("16x16x16", "f32"),
    "s8": ("16x16x16", "s32"),
    "tf32": ("16x16x8", "f32"),
}
MMA = {"f16": "f32 f16", "bf16": "f32", "tf32": "f32", "i8": "i32", "e4m3": "f32", "e5m2": "f32"}
FRAGMENTS = [("16x16x16", "f32"), ("16x16x16", "f16"), ("16x16x16", "s32"), ("16x16x8", "f32")]
SCOPES = {"shared": "shared", "shared_dyn": "shared.dyn", "global": "global"}
BOTH = ("", "_trans")

NAMES = {
    *(f"wmma_load_{size}_{kind}_{o}{t}_{scope}" for kind, (size, _) in WMMA.items() for o in "ab" for t in BOTH for scope in ("shared", "shared_dyn")),
    *(f"wmma_sync_{size}_{kind}{kind}{out}{t}" for kind, (size, outs) in WMMA.items() for out in outs.split() for t in BOTH),
    *(f"wmma_fill_{size}_{out}" for size, out in FRAGMENTS),
    *(f"wmma_store_{size}_{out}_{scope}" for size, out in FRAGMENTS for scope in SCOPES),
    *(f"mma_{kind}{kind}{out}{a}{b}" for kind, outs in MMA.items() for out in outs.split() for a in ("", "_trans_a") for b in ("", "_trans_b")),
    *(f"mma_ldmatrix_{kind}_{o}{t}{dyn}" for kind in ("f16", "bf16") for o in "ab" for t in BOTH for dyn in ("", "_dyn")),
    *(f"mma_ldmatrix_{kind}_{o}{dyn}" for kind in ("tf32", "i8", "e4m3", "e5m2") for o in ("a", "b_trans") for dyn in ("", "_dyn")),
    *(f"mma_fill_16x16_{out}" for out in ("f32", "f16", "i32")),
    *(f"mma_store_16x16_{out}_{scope}_{simple}" for out in ("f32", "f16", "i32") for scope in SCOPES for simple in ("", "simple_")),
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, TensorIntrin]]:
    """What the family registers in an empty registry."""
    TensorIntrin.list()  # all families are loaded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TensorIntrin, "_registry", {})
        patch.setattr(TensorIntrin, "_makers", {})
        cuda._register_wmma()
        cuda._register_mma()
        assert {*TensorIntrin.list()} == NAMES
        yield {name: TensorIntrin.get(name) for name in sorted(NAMES)}


def numbers(buffer: tir.Buffer, rng: Any) -> np.ndarray:
    """Small integers in the type of a buffer, at an address that it is aligned to."""
    array = aligned_zeros([int(size.value) for size in buffer.shape], storage_dtype(buffer.dtype))
    values = rng.integers(-3, 4, array.shape)
    array[...] = encode(values.astype(float), buffer.dtype) if is_small_float(buffer.dtype) else values
    return array


def decode(array: np.ndarray, dtype: DType) -> np.ndarray:
    return (decode_table(dtype)[array] if is_small_float(dtype) else array).astype(float)


def computed(name: str, made: dict[str, TensorIntrin]) -> list[np.ndarray]:
    """Numbers for the buffers of a description, and those of the last one afterwards."""
    desc, rng = made[name].desc, np.random.default_rng(0)
    args = [numbers(buffer, rng) for buffer in desc.buffers()]
    before = [decode(a, b.dtype) for a, b in zip(args, desc.buffers())]
    tir.interp.run(desc, *args)
    return [*before, decode(args[-1], desc.buffers()[-1].dtype)]


def of(names: dict[str, TensorIntrin], pattern: str) -> list[tuple[str, re.Match[str]]]:
    found = [(name, match) for name in sorted(names) if (match := re.fullmatch(pattern, name)) is not None]
    assert found
    return found


def declared(intrinsic: TensorIntrin) -> list[tuple[Any, ...]]:
    """What both functions declare of their buffers, and of what they read and write."""

    def about(func: tir.PrimFunc) -> tuple[list[tuple[Any, ...]], list[list[str]]]:
        block = next(n for n in walk(func.body) if isinstance(n, tir.Block))
        buffers = [
            (tuple(map(int, b.shape)), str(b.dtype), b.scope, b.data_alignment, b.offset_factor, len(b.strides))
            for b in func.buffers()
        ]
        return buffers, [sorted(map(str, side)) for side in (block.reads, block.writes)]

    buffers, regions = about(intrinsic.desc)
    assert about(intrinsic.impl) == (buffers, regions)
    whole = {f"{b.name}[{', '.join(f'0:{size}' for size in b.shape)}]" for b in intrinsic.desc.buffers()}
    assert {*regions[0], *regions[1]} == whole
    return buffers


def sizes(match: re.Match[str]) -> tuple[int, int, int]:
    m, n, k = map(int, match["size"].split("x"))
    return m, n, k


SIZE = r"(?P<size>\d+x\d+x\d+)"


def fragment_number(call: tir.Call, place: int, func: tir.PrimFunc, at: tir.Buffer) -> None:
    """An argument of a call numbers the tiles of a fragment's buffer by rows."""
    rows, columns = map(int, at.shape)
    for row in range(3):
        for column in range(2):
            stride = 2 * columns
            values = {at.strides[0]: stride, at.elem_offset: row * rows * stride + column * columns}
            assert evaluate(call.args[place], values) == row * 2 + column


def call_of(func: tir.PrimFunc) -> tir.Call:
    calls = (n for n in walk(func.body) if isinstance(n, tir.Call))
    return next(call for call in calls if re.search("matrix_sync|mma_sync|fill", call.op))


def test_fragments_are_loaded(made):
    for name, about in of(
        made, f"wmma_load_{SIZE}_(?P<kind>[a-z0-9]+)_(?P<operand>[ab])(?P<trans>_trans)?_(?P<scope>.*)"
    ):
        (m, n, k), dtype = sizes(about), DTYPES[about["kind"]]
        shape = (m, k) if about["operand"] == "a" else (k, n)
        shape = shape[::-1] if about["trans"] else shape
        assert declared(made[name]) == [
            (shape, dtype, SCOPES[about["scope"]], 64, 16, 2),
            (shape, dtype, f"wmma.matrix_{about['operand']}", 64, 16, 2),
        ]
        given, _, got = computed(name, made)
        np.testing.assert_array_equal(got, given)
        call, buffers = call_of(made[name].impl), made[name].impl.buffers()
        assert [int(a) for a in call.args[1:4]] == [m, n, k]
        assert call.args[-1].value == ("col_major" if about["trans"] else "row_major")
        fragment_number(call, 4, made[name].impl, buffers[1])


def test_fragments_are_stored_and_filled(made):
    for name, about in of(made, f"wmma_store_{SIZE}_(?P<out>[a-z0-9]+)_(?P<scope>.*)"):
        m, n, k = sizes(about)
        dtype = DTYPES[about["out"]]
        assert declared(made[name]) == [
            ((m, n), dtype, "wmma.accumulator", 64, 16, 2),
            ((m, n), dtype, SCOPES[about["scope"]], 64, 16, 2),
        ]
        given, _, got = computed(name, made)
        np.testing.assert_array_equal(got, given)
        call = call_of(made[name].impl)
        assert [int(a) for a in call.args[1:4]] == [m, n, k]
        fragment_number(call, 4, made[name].impl, made[name].impl.buffers()[0])
    for name, about in of(made, f"wmma_fill_{SIZE}_(?P<out>.*)"):
        m, n, k = sizes(about)
        assert declared(made[name]) == [((m, n), DTYPES[about["out"]], "wmma.accumulator", 64, 16, 2)]
        assert not computed(name, made)[-1].any()
        call = call_of(made[name].impl)
        assert [int(a) for a in call.args[1:4]] == [m, n, k] and call.args[5].value == 0
        fragment_number(call, 4, made[name].impl, made[name].impl.buffers()[0])


def test_fragments_are_multiplied(made):
    for name, about in of(made, f"wmma_sync_{SIZE}_(?P<kinds>[a-z0-9]+?)(?P<trans>_trans)?"):
        kind = next(kind for kind in WMMA if about["kinds"].startswith(kind * 2))
        (m, n, k), out = sizes(about), about["kinds"].removeprefix(kind * 2)
        right = (n, k) if about["trans"] else (k, n)
        assert declared(made[name]) == [
            ((m, k), DTYPES[kind], "wmma.matrix_a", 64, 16, 2),
            (right, DTYPES[kind], "wmma.matrix_b", 64, 16, 2),
            ((m, n), DTYPES[out], "wmma.accumulator", 64, 16, 2),
        ]
        a, b, c, got = computed(name, made)
        np.testing.assert_array_equal(got, c + a @ (b.T if about["trans"] else b))
        call, buffers = call_of(made[name].impl), made[name].impl.buffers()
        for place, buffer in ((1, 2), (3, 0), (5, 1), (7, 2)):
            fragment_number(call, place, made[name].impl, buffers[buffer])


def lanes(matrix: np.ndarray, layout: Any, e: int, held: int) -> np.ndarray:
    """What the lanes of a warp hold of a matrix."""
    found = np.zeros((32, held))
    for place in np.ndindex(matrix.shape):
        found[layout(*place, e)] = matrix[place]
    return found


def test_matrices_are_loaded_into_a_warp(made):
    for name, about in of(made, r"mma_ldmatrix_(?P<kind>[a-z0-9]+)_(?P<operand>[ab])(?P<trans>_trans)?(?P<dyn>_dyn)?"):
        dtype, is_left = DTYPES[about["kind"]], about["operand"] == "a"
        e = 32 // DType(dtype).bits
        shape = (16, 8 * e) if is_left else (8 * e, 16)
        shape = shape[::-1] if about["trans"] else shape
        warp, shared = declared(made[name])
        assert warp == ((32, 4 * e), dtype, "warp", 64, 4 * e, 0)
        assert shared == (shape, dtype, "shared.dyn" if about["dyn"] else "shared", 64, 4 * e, 2)
        desc, rng = made[name].desc, np.random.default_rng(0)
        held, matrix = (numbers(buffer, rng) for buffer in desc.buffers())
        tir.interp.run(desc, held, matrix)
        operand = decode(matrix, DType(dtype))
        operand = operand.T if about["trans"] else operand
        want = lanes(operand, layout_a if is_left else layout_b, e, 4 * e)
        np.testing.assert_array_equal(decode(held, DType(dtype)), want)


def test_matrices_of_a_warp_are_multiplied_filled_and_stored(made):
    for name, about in of(made, "mma_(?P<kinds>(?!fill|store|ldmatrix)[a-z0-9]+).*"):
        kind = next(kind for kind in MMA if about["kinds"].startswith(kind * 2))
        e, out = 32 // DType(DTYPES[kind]).bits, DTYPES[about["kinds"].removeprefix(kind * 2)]
        operand = ((32, 4 * e), DTYPES[kind], "warp", 64, 4 * e, 0)
        assert declared(made[name]) == [operand, operand, ((32, 8), out, "warp", 64, 8, 0)]
        a, b, c, got = computed(name, made)
        left, right = np.zeros((16, 8 * e)), np.zeros((8 * e, 16))
        for i in range(16):
            for j in range(8 * e):
                left[i, j], right[j, i] = a[layout_a(i, j, e)], b[layout_b(j, i, e)]
        np.testing.assert_array_equal(got, c + lanes(left @ right, layout_a, 2, 8))
    for name, about in of(made, "mma_fill_16x16_(?P<out>.*)"):
        assert declared(made[name]) == [((32, 8), DTYPES[about["out"]], "warp", 64, 8, 0)]
        assert not computed(name, made)[-1].any()
    for name, about in of(made, "mma_store_16x16_(?P<out>[a-z0-9]+)_(?P<scope>.*?)_(simple_)?"):
        dtype, scope = DTYPES[about["out"]], SCOPES[about["scope"]]
        assert declared(made[name]) == [
            ((32, 8), dtype, "warp", 64, 8, 0), ((16, 16), dtype, scope, 64, 1, 2),
        ]  # fmt: skip
        a, _, got = computed(name, made)
        np.testing.assert_array_equal(lanes(got, layout_a, 2, 8), a)


@pytest.mark.parametrize("e", [1, 2, 4])
def test_the_layouts_are_those_of_the_instruction_set(e):
    """PTX: with g = lane // 4 and t = lane % 4, runs of e elements; the second half of the rows, and of the columns, follow."""
    for lane in range(32):
        g, t = divmod(lane, 4)
        for part in range(2):  # of the columns
            for below in range(2):
                for n in range(e):
                    column = part * 4 * e + t * e + n
                    assert layout_a(g + 8 * below, column, e) == (lane, (2 * part + below) * e + n)
                    assert layout_b(column, g + 8 * below, e) == (lane, (2 * below + part) * e + n)
    assert layout_a(9, 3) == layout_a(9, 3, 2) and layout_b(9, 3) == layout_b(9, 3, 2)


NUMBERS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "int8": "i8", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "float64": "",
}  # fmt: skip


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("out", ["float32", "float16", "int32", "float64"])
def test_groups_name_the_parts_of_a_product(dtype, out):
    kind, short = NUMBERS[dtype], {"float32": "f32", "float16": "f16", "int32": "i32"}.get(out, "")
    for trans_a, trans_b in ((False, False), (False, True), (True, False), (True, True)):
        args = ("shared.dyn", "shared.dyn", dtype, out)
        if not short or short not in MMA.get(kind, "").split():
            with pytest.raises(ValueError, match=f"^mma has no product of {dtype} into {out}$"):
                get_mma_intrin_group(*args, trans_a, trans_b)
        elif kind not in ("f16", "bf16") and (trans_a, trans_b) != (False, True):
            with pytest.raises(ValueError, match=f"^mma of {dtype} takes A by rows and B transposed: trans_a=False"):
                get_mma_intrin_group(*args, trans_a, trans_b)
        else:
            group = get_mma_intrin_group(*args, trans_a, trans_b)
            e = 32 // DType(dtype).bits
            assert group["micro_kernel"] == (16, 16, 8 * e) and group["init"] == f"mma_fill_16x16_{short}"
            assert group["load_a"] == f"mma_ldmatrix_{kind}_a{'_trans' * trans_a}_dyn"
            assert group["load_b"] == f"mma_ldmatrix_{kind}_b{'_trans' * trans_b}_dyn"
            assert group["compute"] == f"mma_{kind}{kind}{short}{'_trans_b' * trans_b}"
            assert group["store"] == f"mma_store_16x16_{short}_shared_dyn_"
            assert group["layout_a"](3, 5) == (layout_a(5, 3, e) if trans_a else layout_a(3, 5, e))
            assert group["layout_b"](3, 5) == (layout_b(5, 3, e) if trans_b else layout_b(3, 5, e))
            assert group["layout_c"](3, 5) == layout_a(3, 5, 2)
            assert {name for name in group.values() if isinstance(name, str)} <= NAMES


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("out", ["float32", "float16", "int32", "int8"])
def test_groups_name_the_parts_of_a_product_of_fragments(dtype, out):
    kind = {"float16": "f16", "bfloat16": "bf16", "int8": "s8", "float32": "tf32"}.get(dtype, "")
    short = {"float32": "f32", "float16": "f16", "int32": "s32"}.get(out, "none")
    if short not in WMMA.get(kind, ("", ""))[1].split():
        with pytest.raises(ValueError, match=f"^wmma has no product for {dtype} into {out}$"):
            get_wmma_intrin_group("shared", "global", dtype, out)
        return
    size = WMMA[kind][0]
    for trans in (False, True):
        end = "_trans" * trans
        assert get_wmma_intrin_group("shared.dyn", "global", dtype, out, trans) == {
            "init": f"wmma_fill_{size}_{short}",
            "load_a": f"wmma_load_{size}_{kind}_a_shared_dyn",
            "load_b": f"wmma_load_{size}_{kind}_b{end}_shared_dyn",
            "compute": f"wmma_sync_{size}_{kind}{kind}{short}{end}",
            "store": f"wmma_store_{size}_{short}_global",
        }


@pytest.mark.parametrize(
    ("constant", "name"),
    [
        ("WMMA_LOAD_16x16x16_F16_A_INTRIN", "wmma_load_16x16x16_f16_a_shared"),
        ("WMMA_LOAD_16x16x16_F16_B_TRANS_DYN_INTRIN", "wmma_load_16x16x16_f16_b_trans_shared_dyn"),
        ("WMMA_FILL_16x16x16_F32_INTRIN", "wmma_fill_16x16x16_f32"),
        ("WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN", "wmma_sync_16x16x16_f16f16f32_trans"),
        ("WMMA_STORE_16x16x16_F32_GLOBAL_INTRIN", "wmma_store_16x16x16_f32_global"),
        ("LDMATRIX_f16_A_INTRIN", "mma_ldmatrix_f16_a"),
        ("LDMATRIX_i8_B_TRANS_DYN_INTRIN", "mma_ldmatrix_i8_b_trans_dyn"),
        ("MMA_f16f16f32_TRANS_B_INTRIN", "mma_f16f16f32_trans_b"),
        ("MMA_fill_16x16_f32_INTRIN", "mma_fill_16x16_f32"),
        ("MMA_store_16x16_f32_global_INTRIN", "mma_store_16x16_f32_global_"),
        ("MMA_store_16x16_f32_shared_dyn_INTRIN_SIMPLE", "mma_store_16x16_f32_shared_dyn_simple_"),
        ("MMA_f16f16f32", None),
        ("MMA_f16f16f64_INTRIN", None),
        ("nothing", None),
    ],
)
def test_the_constants_of_tvm(constant, name):
    if name is not None:
        assert getattr(cuda, constant) == name
    else:
        with pytest.raises(AttributeError, match=f"^module 'tir.intrin.cuda' has no attribute '{constant}'$"):
            getattr(cuda, constant)
