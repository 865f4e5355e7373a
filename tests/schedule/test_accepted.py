"""Steps that are legal and easily refused: each is accepted, and the result is the same, executed and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule


def compiled(sch: tir.Schedule) -> None:
    """:func:`same`, and the compiled program gives what the compiled original does."""
    same(sch)
    rng = np.random.default_rng(0)
    func = sch.mod["main"]
    arrays = []
    for p in func.params:
        buffer = func.buffer_map[p]
        shape = [int(n) for n in buffer.shape]
        arrays.append(rng.integers(0, 64, shape).astype(str(buffer.dtype)))
    before, after = [a.copy() for a in arrays], [a.copy() for a in arrays]
    tir.build(sch.history[0].mod)(*before)
    tir.build(sch.mod)(*after)
    for a, b in zip(before, after):
        np.testing.assert_array_equal(a, b)


PACKED = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Z: T.Buffer((SIZE,), "float32")):
    Y = T.alloc_buffer((2, 4), "float32")
    for i, j in T.grid(2, 4):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi * 4 + vj] * T.float32(2)
    for i in range(SIZE):
        with T.block("Z"):
            v = T.axis.spatial(SIZE, i)
            Z[v] = Y[INDICES] + T.float32(1)
"""


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7, 8])
def test_unpack_to_an_odd_size(size):
    sch = schedule(PACKED.replace("SIZE", str(size)).replace("INDICES", "v // 4, v % 4"))
    sch.reverse_compute_inline("Z")
    compiled(sch)


@pytest.mark.parametrize("indices", ["v // 5, v % 4", "v // 4, v % 2", "v % 2, v % 4", "v // 4, v // 2"])
def test_indices_that_are_not_one_to_one(indices):
    sch = schedule(PACKED.replace("SIZE", "7").replace("INDICES", indices))
    refused(lambda: sch.reverse_compute_inline("Z"))


@pytest.mark.parametrize("size", [1, 7, 8])
@pytest.mark.parametrize("indices", ["v // 4, v % 4", "v // 4, v % 4 + 2", "v // 4 + 1, v % 4"])
def test_elements_that_are_not_unpacked(size, indices):
    wide = PACKED.replace("(2, 4)", "(3, 8)").replace("T.grid(2, 4)", "T.grid(3, 8)").replace("(8,)", "(32,)")
    sch = schedule(wide.replace("SIZE", str(size)).replace("INDICES", indices))
    sch.reverse_compute_inline("Z")
    compiled(sch)


def test_unpack_a_tile_of_three_digits():
    sch = schedule(
        """
@T.prim_func
def main(X: T.Buffer((32, 3), "float32"), Z: T.Buffer((21, 3), "float32")):
    Y = T.alloc_buffer((2, 4, 3, 4), "float32")
    for i, j, c, k in T.grid(2, 4, 3, 4):
        with T.block("Y"):
            vi, vj, vc, vk = T.axis.remap("SSSS", [i, j, c, k])
            Y[vi, vj, vc, vk] = X[vi * 16 + vj * 4 + vk, vc] * T.float32(2)
    for i, c in T.grid(21, 3):
        with T.block("Z"):
            v, w = T.axis.remap("SS", [i, c])
            Z[v, w] = Y[v // 16, v % 16 // 4, w, v % 4] + T.float32(1)
"""
    )
    sch.reverse_compute_inline("Z")
    compiled(sch)


def test_pack_from_an_odd_size():
    sch = schedule(
        """
@T.prim_func
def main(X: T.Buffer((7,), "float32"), Z: T.Buffer((7,), "float32")):
    Y = T.alloc_buffer((2, 4), "float32")
    for i in range(7):
        with T.block("Y"):
            v = T.axis.spatial(7, i)
            Y[v // 4, v % 4] = X[v] * T.float32(2)
    for i in range(7):
        with T.block("Z"):
            v = T.axis.spatial(7, i)
            Z[v] = Y[v // 4, v % 4] + T.float32(1)
"""
    )
    sch.compute_inline("Y")
    compiled(sch)


UNPACK = """
@T.prim_func
def main(P: T.Buffer((4, 4), "int32"), O: T.Buffer((4, 32), "int32")):
    for i, j in T.grid(4, 32):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = VALUE
"""

UNPACK_8 = """
@T.prim_func
def d(p: T.handle, o: T.handle):
    P = T.match_buffer(p, (1,), "int32", offset_factor=1)
    O = T.match_buffer(o, (8,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(P[0:1]); T.writes(O[0:8])
        for j in range(8):
            with T.block("O"):
                v = T.axis.spatial(8, j)
                O[v] = VALUE
"""

VALUES = [
    ("P[vi, vj // 8] >> (vj % 8 * 4)", "P[v // 8] >> (v % 8 * 4)"),
    ("P[vi, vj // 8] >> (vj % 8 * 4)", "P[0] >> (v * 4)"),
    ("P[vi, vj // 8] + vj % 8 * 4", "P[v // 8] + v % 8 * 4"),
    ("T.bitwise_and(P[vi, vj // 8] >> (4 * (vj % 8)), 15)", "T.bitwise_and(P[0] >> (v * 4), 15)"),
    ("T.Select(vj % 8 < 4, P[vi, vj // 8], 7)", "T.Select(v < 4, P[0], 7)"),
]


def unpacked(value: str, described: str) -> tir.Schedule:
    desc = tir.script.parse(UNPACK_8.replace("VALUE", described))
    sch = schedule(UNPACK.replace("VALUE", value))
    sch.tensorize(sch.split(sch.get_loops("O")[1], [None, 8])[1], tir.intrin.TensorIntrin(desc, desc, "unpack_8"))
    return sch


@pytest.mark.parametrize(("value", "described"), VALUES)
def test_tensorize_simplifies_values(value, described):
    compiled(unpacked(value, described))


@pytest.mark.parametrize(
    ("value", "described"),
    [
        ("P[vi, vj // 8] >> (vj % 8 * 4)", "P[0] >> (v * 2)"),
        ("P[vi, vj // 8] >> (vj % 4 * 4)", "P[0] >> (v * 4)"),
        ("P[vi, vj // 8] + vj * 4", "P[0] + v * 4"),
        ("P[vi, vj // 8] + vi", "P[0] + v"),
    ],
)
def test_tensorize_refuses_other_values(value, described):
    refused(lambda: unpacked(value, described), "does not compute")


def wide(text: str) -> str:
    """``text`` with int64 loops and buffers."""
    import re

    text = re.sub(
        r"(grid|range|spatial|Buffer|match_buffer)(\(.*)",
        lambda m: m[1] + re.sub(r"(?<![\w.])(\d+)(?=[,)])", r"T.int64(\1)", m[2]),
        text,
    )
    return re.sub(r"vj? (% \d )?\* \d", lambda m: f'T.Cast("int32", {m[0]})', text)


@pytest.mark.parametrize("program,described", [(wide, str), (str, wide), (wide, wide)])
@pytest.mark.parametrize("factor,fits", [("4", True), ("2", False)])
def test_tensorize_whatever_the_width_of_indices(program, described, factor, fits):
    desc = tir.script.parse(described(UNPACK_8.replace("VALUE", "P[0] >> (v * 4)").replace("* 4", f"* {factor}", 1)))
    sch = schedule(program(UNPACK.replace("VALUE", "P[vi, vj // 8] >> (vj % 8 * 4)")))
    inner = sch.split(sch.get_loops("O")[1], [None, 8])[1]
    step = lambda: sch.tensorize(inner, tir.intrin.TensorIntrin(desc, desc, "unpack_8"))  # noqa: E731
    if not fits:
        refused(step, "does not compute")
        return
    step()
    compiled(sch)


MULTIPLY = """
@T.prim_func
def d(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.block("u"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_tensorize_a_symbolic_product(kind):
    desc = tir.script.parse(MULTIPLY)
    sch = schedule(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.{kind}()
    A = T.match_buffer(a, (n, T.{kind}(4), T.{kind}(8)), "float32")
    B = T.match_buffer(b, (T.{kind}(8), T.{kind}(8)), "float32")
    C = T.match_buffer(c, (n, T.{kind}(4), T.{kind}(8)), "float32")
    for i, ii, j, k in T.grid(n, T.{kind}(4), T.{kind}(8), T.{kind}(8)):
        with T.block("C"):
            vi, vr, vj, vk = T.axis.remap("SSSR", [i, ii, j, k])
            with T.init():
                C[vi, vr, vj] = T.float32(0)
            C[vi, vr, vj] = C[vi, vr, vj] + A[vi, vr, vk] * B[vj, vk]
""")
    i, ii, j, k = sch.get_loops("C")
    (j, jj), (k, kk) = (sch.split(x, [None, 4]) for x in (j, k))
    sch.reorder(i, j, k, ii, jj, kk)
    sch.decompose_reduction("C", k)
    sch.tensorize(ii, tir.intrin.TensorIntrin(desc, desc, "multiply_4"))
    for n in (0, 1, 3):
        same(sch, n=n)


UNREAD = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            Y[v] = A[v] * T.float32(2)
    for i in range(8):
        with T.block("Z"):
            v = T.axis.spatial(8, i)
            Z[v] = A[v] + T.float32(1)
"""


def test_inlining_a_block_that_nothing_reads_removes_it():
    sch = schedule(UNREAD)
    sch.compute_inline("Y")
    assert [b.name for b in sch.get_child_blocks("root")] == ["Z"]
    compiled(sch)


def test_a_pointer_is_a_use():
    text = UNREAD.replace("Z[v] = A", 'T.evaluate(T.call_extern("void", "g", Y.data))\n            Z[v] = A')
    refused(lambda: schedule(text).compute_inline("Y"), "also written by Z")


def test_a_function_that_does_nothing_else():
    text = UNREAD[: UNREAD.rindex("    for")]
    sch = schedule(text)
    sch.compute_inline("Y")
    same(sch)


def test_a_condition_that_always_holds_pads_nothing():
    text = UNREAD.replace("A[v] + T.float32(1)", "T.if_then_else(0 <= v and v < 8, A[v], T.float32(0))")
    sch = schedule(text)
    assert not sch.can_decompose_padding("Z", sch.get_loops("Z")[0])
    refused(lambda: sch.decompose_padding("Z", sch.get_loops("Z")[0]), "always holds")


def test_output_blocks_inside_blocks():
    sch = schedule(UNREAD)
    sch.blockize(sch.get_loops("Z")[0])
    sch.blockize(sch.get_loops("Y")[0])
    assert [b.name for b in sch.get_output_blocks("root")] == ["Z_o", "Z"]


@pytest.mark.parametrize(("viewed", "blocks"), [("Y", ["Z"]), ("Z", ["fill", "Z"])])
def test_a_view_of_memory_allocated_there_is_no_output(viewed, blocks):
    sch = schedule(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8,), "float32")
    with T.block("outer"):
        W = T.match_buffer({viewed}[0:8], (8,))
        for i in range(8):
            with T.block("fill"):
                v = T.axis.spatial(8, i)
                W[v] = A[v]
    for i in range(8):
        with T.block("Z"):
            v = T.axis.spatial(8, i)
            Z[v] = Z[v] + Y[v]
""")
    assert [b.name for b in sch.get_output_blocks("root") if b.name != "outer"] == blocks


PRODUCT = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    m = T.int32()
    n = T.int32()
    A = T.match_buffer(a, (m, n), "int32")
    C = T.match_buffer(c, (m, n), "int32")
    B = T.alloc_buffer((m * (n + 1),), "int32")
    for i, j in T.grid(m, COLUMNS):
        with T.block("B"):
            vi = T.axis.spatial(m, i)
            vj = T.axis.spatial(COLUMNS, j)
            B[vi * n + vj] = A[vi, T.min(vj, n - 1)]
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi * n + vj]
"""


def test_a_product_of_symbolic_size_is_one_to_one():
    sch = schedule(PRODUCT.replace("COLUMNS", "n"))
    sch.reorder("B.j", "B.i")
    sch.reorder("C.j", "C.i")
    for m, n in [(0, 3), (3, 0), (1, 4), (3, 2)]:
        same(sch, m=m, n=n)
    sch = schedule(PRODUCT.replace("COLUMNS", "n"))
    sch.compute_at("B", "C.i")
    for m, n in [(0, 3), (3, 0), (1, 4), (3, 2)]:
        same(sch, m=m, n=n)


def test_rows_that_overlap_keep_their_order():
    refused(lambda: schedule(PRODUCT.replace("COLUMNS", "n + 1")).reorder("B.j", "B.i"), "two writes of one element")
