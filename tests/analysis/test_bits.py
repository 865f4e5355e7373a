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
