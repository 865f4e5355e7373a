"""Results that lie in short groups, such as complex numbers, points and pixels: vectors from group to group; tiles of rows."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir import te
from tir.testing import assert_same_result

WIDE, NARROW = "llvm -num-cores=1 -vector_width=512", "llvm -num-cores=2 -vector_width=128"


def complex_product(m: int, n: int, terms: int) -> tir.PrimFunc:
    a, b = te.placeholder((m, terms, 2), name="a"), te.placeholder((terms, n, 2), name="b")
    k = te.reduce_axis((0, terms), "k")

    def value(i: tir.Var, j: tir.Var, part: tir.Var) -> tir.Expr:
        real = a[i, k, 0] * b[k, j, 0] - a[i, k, 1] * b[k, j, 1]
        imaginary = a[i, k, 0] * b[k, j, 1] + a[i, k, 1] * b[k, j, 0]
        return te.sum(tir.if_then_else(part == 0, real, imaginary), axis=k)

    return te.create_prim_func([a, b, te.compute((m, n, 2), value, name="c")])


def forces(count: int) -> tir.PrimFunc:
    """Of points on each other, along each of three axes."""
    p, k = te.placeholder((count, 3), name="p"), te.reduce_axis((0, count), "k")

    def value(i: tir.Var, axis: tir.Var) -> tir.Expr:
        apart = [p[k, n] - p[i, n] for n in range(3)]
        square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + 1.0
        return te.sum((p[k, axis] - p[i, axis]) / square, axis=k)

    return te.create_prim_func([p, te.compute((count, 3), value, name="f")])


def loops(sch: tir.Schedule, block: str, kind: str) -> list[int]:
    found = [sch.get(loop) for loop in sch.get_loops(block)]
    return [loop.extent.value for loop in found if loop.kind == kind and loop.extent.value > 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("m", "n", "terms"), [(8, 32, 16), (7, 37, 9)])
def test_complex_products_are_in_vectors_of_each_part(m: int, n: int, terms: int, target: str):
    func = complex_product(m, n, terms)
    sch = tir.tune.default(func, target)
    lanes = 16 if target is WIDE else 4
    if target is WIDE:
        assert loops(sch, "c", "vectorized") == [lanes] and loops(sch, "c", "unrolled")[-1] == 2
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("rows", "columns", "terms"), [(8, 32, 16), (7, 37, 9), (5, 1, 70)])
def test_the_real_part_of_complex_products_is_in_vectors(rows: int, columns: int, terms: int, target: str):
    a, b = te.placeholder((rows, terms, 2), name="a"), te.placeholder((terms, columns, 2), name="b")
    k = te.reduce_axis((0, terms), "k")
    made = te.compute(
        (rows, columns), lambda i, j: te.sum(a[i, k, 0] * b[k, j, 0] - a[i, k, 1] * b[k, j, 1], axis=k), name="c"
    )
    func = te.create_prim_func([a, b, made])
    sch = tir.tune.default(func, target)
    if target is WIDE:  # of results, or of partial results
        assert " in T.vectorized(16):" in sch.mod.script()
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


def test_coordinates_of_points_are_in_vectors():
    func = forces(100)
    sch = tir.tune.default(func, WIDE)
    assert loops(sch, "f", "vectorized") == [16] and loops(sch, "f", "unrolled") == [3]
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


def transposed_convolution(size: int, taps: int, stride: int, pad: int) -> tir.PrimFunc:
    """Written from the result's side, with the digits of a place in its condition."""
    x, w = te.placeholder((3, size), name="x"), te.placeholder((3, 5, taps), name="w")
    c, k = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, taps), "k")

    def value(o: tir.Var, i: tir.Var) -> tir.Expr:
        at = i + pad - k.var
        inside = tir.all(at >= 0, at % stride == 0, at // stride < size)
        return te.sum(te.if_then_else(inside, x[c, at // stride], 0.0) * w[c, o, k], axis=[c, k])

    return te.create_prim_func([x, w, te.compute((5, (size - 1) * stride + taps - 2 * pad), value, name="y")])


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize(("size", "taps", "stride", "pad"), [(33, 4, 2, 0), (20, 4, 2, 1), (17, 5, 3, 1)])
def test_phases_of_a_transposed_convolution_are_in_vectors(size: int, taps: int, stride: int, pad: int, target: str):
    func = transposed_convolution(size, taps, stride, pad)
    sch = tir.tune.default(func, target)
    if target is WIDE:
        assert loops(sch, "y_update", "vectorized") == [16] and stride in loops(sch, "y_update", "unrolled")
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


def test_sums_of_several_products_are_of_tiles_of_rows():
    a, b, c, d = (te.placeholder((64, 64), name=name) for name in "abcd")
    k = te.reduce_axis((0, 64), "k")
    sums = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j] - c[i, k] * d[k, j], axis=k), name="y")
    func = te.create_prim_func([a, b, c, d, sums])
    sch = tir.tune.default(func, WIDE)
    assert loops(sch, "y", "unrolled") == [4, 4] and loops(sch, "y", "vectorized") == [16]
    assert_same_result(func, sch.mod, engines=("llvm",), rtol=1e-4)


def test_bytes_along_a_row_are_added_up_by_llvm():
    """It has instructions that add neighbours, where partial sums would be as wide as the result."""
    k = te.reduce_axis((0, 512), "k")

    def of(dtype: str) -> tir.PrimFunc:
        a, b = (te.placeholder((16, 512), dtype, name=name) for name in "ab")
        total = "float32" if dtype == "float32" else "int32"
        value = te.compute(
            (16,), lambda i: te.sum(te.abs(a[i, k].astype(total) - b[i, k].astype(total)), axis=k), name="s"
        )
        return te.create_prim_func([a, b, value])

    narrow, same = (tir.tune.default(of(dtype), WIDE) for dtype in ("uint8", "float32"))
    assert not loops(narrow, "s", "vectorized") and "rfactor" not in str(narrow.trace)
    assert "rfactor" in str(same.trace)


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("cut", ["uint8", "int16"])
def test_integers_that_are_cut_are_left_to_llvm(target: str, cut: str):
    """It computes them in as few bits as they need; numbers that are compared need all."""
    x, y = (te.placeholder((8, 64), "uint8", name=name) for name in "xy")
    a, b = (lambda *at, t=t: t[at].astype("int32") for t in (x, y))
    mean = te.compute((8, 64), lambda i, j: ((a(i, j) * 3 + b(i, j) * 5 + 4) >> 3).astype(cut), name="mean")
    most = te.compute((8, 64), lambda i, j: te.min(a(i, j) + b(i, j), 255).astype(cut), name="most")
    func = te.create_prim_func([x, y, mean, most])
    sch = tir.tune.default(func, target)
    assert not loops(sch, "mean", "vectorized") and loops(sch, "most", "vectorized")
    given = np.random.default_rng(0).integers(0, 256, (2, 8, 64), "uint8")
    out = [np.zeros((8, 64), cut) for _ in range(2)]
    tir.build(sch.mod, target)["main"](*given, *out)
    wide = given.astype("int32")
    np.testing.assert_array_equal(out[0], ((wide[0] * 3 + wide[1] * 5 + 4) >> 3).astype(cut))
    np.testing.assert_array_equal(out[1], np.minimum(wide[0] + wide[1], 255).astype(cut))


def test_pixels_that_share_what_they_read_are_straight_code():
    """Colours at half the resolution: the neighbours that read one element, and their members, as LLVM makes vectors of them."""
    y, u = te.placeholder((7, 40), "uint8", name="y"), te.placeholder((7, 20), "uint8", name="u")

    def value(h: tir.Var, w: tir.Var, c: tir.Var) -> tir.Expr:
        light, colour = y[h, w].astype("int32"), u[h, w // 2].astype("int32")
        return te.max(te.min(light + te.if_then_else(c == 0, colour, 3 - colour), 255), 0).astype("uint8")

    func = te.create_prim_func([y, u, te.compute((7, 40, 3), value, name="o")])
    sch = tir.tune.default(func, WIDE)
    assert loops(sch, "o", "unrolled") == [2, 3]
    assert_same_result(func, sch.mod, engines=("llvm",))
