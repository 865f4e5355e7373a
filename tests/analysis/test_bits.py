"""Legality of programs that index by bitwise operations: exact, since their operands are bounded."""

from __future__ import annotations

import pytest

from tests.prim_checks import same, schedule

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


@pytest.mark.parametrize(
    ("written", "read", "legal"),
    [
        ("T.bitwise_xor(v, v // 4)", "v", True),
        ("T.bitwise_xor(v, v // 2)", "T.bitwise_and(v, v + 1)", False),
    ],
)
def test_bits_of_two_numbers_that_a_consumer_follows(written, read, legal):
    sch = schedule(PROGRAM.format(written=written, read=read))
    answer = sch.can.reverse_compute_at("C", sch.get_loops("B")[0])
    assert bool(answer) == legal
    if legal:
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
        same(sch)
    else:
        assert "cannot prove" not in answer.reason and answer.reason.count("^ here") == 2  # both statements


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
def test_a_swizzle_of_more_bits_than_sets_take(read, legal):
    """Where all accesses of a buffer have one swizzle, it is no more than another name for each element."""
    sch = schedule(SWIZZLED.format(read=read))
    assert bool(sch.can.parallel(sch.get_loops("B")[1])) == legal
