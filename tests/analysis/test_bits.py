"""Legality of programs that index by bitwise operations: exact with a constant, and where all accesses have one swizzle."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tests.prim_checks import refused, same, schedule
from tir.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(4, 2):
        with T.block("B"):
            v = T.axis.spatial(8, i * 2 + k)
            B[{written}] = A[v] * 2.0
    for j, k in T.grid(4, 2):
        with T.block("C"):
            v = T.axis.spatial(8, j * 2 + k)
            C[v] = B[{read}]
"""


@pytest.mark.parametrize(
    ("written", "read", "legal"),
    [
        ("T.bitwise_or(v, 8)", "v + 8", True),
        ("T.bitwise_xor(v, 8)", "v + 8", True),
        ("T.bitwise_and(v + 8, 15)", "v + 8", True),
        ("T.bitwise_xor(v, 7)", "7 - v", True),
        ("T.bitwise_or(v, 8)", "15 - v", False),
        ("T.bitwise_xor(v, 7)", "v", False),
    ],
)
def test_iterations_side_by_side(written, read, legal):
    sch = schedule(PROGRAM.format(written=written, read=read))
    answer = sch.can.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert bool(answer) == legal
    if legal:
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
        same(sch)
    else:
        assert "not yet written" in answer.reason


def test_bits_of_two_numbers_are_not_affine():
    """Where accesses of a buffer differ in their swizzles, or are no swizzles."""
    sch = schedule(PROGRAM.format(written="T.bitwise_xor(v, v // 4)", read="v"))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "`v ^ v // 4`: it is not affine")


APART = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), C: T.Buffer((128,), "int32")):
    for i, j in T.grid(8, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[{index}] = A[v * 8 + w]
"""


@pytest.mark.parametrize(
    ("index", "legal"),
    [
        ("(v & 1) << 3 | (v & 2) << 1 | (v & 4) >> 1 | w << 4", True),  # reversed bits
        ("v & 1 | (w & 1) << 1 | (v & 2) << 1 | (w & 2) << 2 | (v & 4) << 2 | (w & 4) << 3", True),  # Z order
        ("v % 2 ^ w % 8 * 2 ^ v // 2 % 4 * 16", True),
        ("v << 3 | w", True),
        ("(v & 3 | 4) << 1 | w << 4", False),  # v & 4 is lost
        ("(v & 3) << 4 | w", False),
        ("v // 2 % 2 * 2 | (v & 1) | w << 2", False),
    ],
)
def test_bits_of_their_own_are_a_sum(index, legal):
    sch = schedule(APART.format(index=index))
    i, j = sch.get_loops("C")
    assert bool(sch.can.parallel(j))
    if legal:
        sch.parallel(sch.fuse(i, j))
        same(sch)
    else:
        refused(lambda: sch.parallel(i), "write", "C[")


@pytest.mark.parametrize("index", ["(v & 3) << 1 | w & 2", "v | w << 2", "v - 1 | w << 3"])
def test_bits_that_may_be_shared_are_no_sum(index):
    refused(lambda: (sch := schedule(APART.format(index=index))).parallel(sch.get_loops("C")[0]), "it is not affine")


BITONIC = """
@T.prim_func
def main(A: T.Buffer((32,), "int32")):
    for k in range(5):
        for j in range(k + 1):
            for i in range(32):
                with T.block("exchange"):
                    vk, vj = T.axis.opaque(5, k), T.axis.opaque(5, j)
                    vi = T.axis.opaque(32, i)
                    other: T.int32 = {other}
                    if other > vi:
                        if (A[vi] > A[other]) == ((vi & 2 << vk) == 0):
                            least: T.int32 = A[other]
                            A[other] = A[vi]
                            A[vi] = least
"""


@pytest.mark.parametrize("other", ["vi ^ 1 << vk - vj", "vi ^ (1 << vk - vj) * 1 & 31"])
def test_pairs_by_a_shifted_bit_are_told_apart_by_its_amounts(other):
    sch = schedule(BITONIC.format(other=other))
    k, j, i = sch.get_loops("exchange")
    sch.parallel(i)
    same(sch)
    data = np.random.default_rng(0).integers(0, 99, 32).astype("int32")
    wanted = np.sort(data)
    tir.build(sch)(data)
    np.testing.assert_array_equal(data, wanted)


@pytest.mark.parametrize("other", ["vi + (1 << vk - vj) & 31", "vi ^ 1 << vk * 9 - vj"])
def test_pairs_by_other_bits_are_not_shown_to_be_apart(other):
    sch = schedule(BITONIC.format(other=other))
    refused(lambda: sch.parallel(sch.get_loops("exchange")[2]), "parallel")


@pytest.mark.parametrize(("index", "dtype"), [("~v + 16", "int32"), ("v & 12 | ~v & 3", "int32"), ("~v", "uint8")])
def test_a_complement_is_a_difference(index, dtype):
    """The reference executor agrees that no two iterations meet."""
    sch = schedule(f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((256,), "int32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.opaque(16, i)
            v = T.Cast("{dtype}", vi)
            C[T.Cast("int32", {index})] = A[vi]
""")
    sch.parallel("i")
    same(sch)


SWIZZLED = """
@T.prim_func
def main(A: T.Buffer((256, 128), "float32"), C: T.Buffer((256, 128), "float32")):
    B = T.alloc_buffer((256, 128), "float32")
    for i, j in T.grid(256, 128):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, T.bitwise_xor(w, v % 128)] = A[v, w] * 2.0
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, {read}]
"""


@pytest.mark.parametrize(
    ("read", "legal"),
    [
        ("T.bitwise_xor(w, v % 128)", True),
        ("T.bitwise_xor(v % 128, w)", True),
        ("T.bitwise_xor(w, v % 64)", False),
        ("T.bitwise_xor(127 - w, v % 128)", False),
    ],
)
def test_a_swizzle_that_all_accesses_have(read, legal):
    """Where all accesses of a buffer have one swizzle, it is no more than another name for each element."""
    sch = schedule(SWIZZLED.format(read=read))
    assert bool(sch.can.parallel(sch.get_loops("B")[1])) == legal


def written_at(index: str) -> tir.PrimFunc:
    return parse(f"""
@T.prim_func
def f(A: T.Buffer((256,), "int32"), B: T.Buffer((512,), "int32")):
    for i, j in T.grid(4, 64):
        with T.block("B"):
            v = T.axis.spatial(256, i * 64 + j)
            B[{index}] = A[v]
""")


@pytest.mark.parametrize("loop", ["i", "j"])
@pytest.mark.parametrize(
    "index",
    [
        "v & 63",
        "v & 48",
        "(v & 31) + 64 * (v // 32 & 3)",
        "v | 63",
        "v ^ 255",
        "255 - v & 127",
        "(v & 85) * 2 + (v & 170)",
        "v >> 2",
    ],
)
def test_a_constant_operand_of_many_bits_is_exact(index, loop):
    func = written_at(index)
    v = np.arange(256).reshape(4, 64)
    rows = np.broadcast_to(eval(index, {"v": v}), v.shape)
    runs = rows if loop == "i" else rows.T
    clash = any(set(a) & set(b) for n, a in enumerate(runs.tolist()) for b in runs[:n].tolist())
    assert bool(tir.Schedule(func).can.parallel(loop)) is not clash


TILE = """
@T.prim_func
def f(A: T.Buffer((64, 64), "int32"), B: T.Buffer((64, 64), "int32")):
    S = T.alloc_buffer((64, 64), "int32")
    for i, j in T.grid(64, 64):
        with T.block("S"):
            v, w = T.axis.remap("SS", [i, j])
            S[v, INDEX] = A[v, w]
    for k, l in T.grid(64, 64):
        with T.block("B"):
            v, w = T.axis.remap("SS", [k, l])
            B[v, w] = S[v, INDEX]
"""


@pytest.mark.parametrize("index", ["((w ^ v % 8) ^ v // 8 % 8) ^ v % 4 * 8", "w ^ v % 8 * 8", "w ^ v * 3 % 64"])
def test_swizzles_need_few_operations_of_exact_sets(index, monkeypatch):
    monkeypatch.setattr("tir.poly.relation.FIRST_STEPS", 2_000)
    monkeypatch.setattr("tir.poly.relation.COST", 1e9)  # one attempt
    sch = tir.Schedule(parse(TILE.replace("INDEX", index)))
    sch.reorder("j", "i")
    if "3" not in index:  # sets of the reader's elements need the digits of a column
        sch.compute_at("S", sch.split("k", [8, 8])[0])
