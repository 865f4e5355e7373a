"""How far an allocation may shrink: every access counts, by whatever name the memory is accessed."""

from __future__ import annotations

import pytest

from tir import transform
from tir.script import parse
from tir.stmt import Block
from tir.visit import walk

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((64,), "float32")
        {}
"""


def size_after(body: str) -> int:
    """The elements that the buffer B keeps when it is compacted."""
    func = parse(PROGRAM.format(body.strip().replace("\n", "\n        ")))
    made = transform.compact_buffer_allocation(func)
    root = next(n for n in walk(made.body) if isinstance(n, Block) and n.alloc_buffers)
    return int(root.alloc_buffers[0].shape[0])


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param("for i in range(8):\n    B[i + 3] = A[i]\n    C[i] = B[i + 3]", 8, id="a_box"),
        pytest.param(
            "D = T.decl_buffer((64,), 'float32', data=B.data)\nB[0] = A[0]\nD[63] = A[1]\nC[0] = D[63]",
            64,
            id="another_name",
        ),
        pytest.param("B[0] = A[0]\nT.evaluate(T.call_extern('int32', 'g', T.address_of(B[0])))", 64, id="address"),
        pytest.param("B[0] = A[0]\nT.evaluate(T.call_extern('int32', 'g', B.data))", 64, id="pointer"),
        pytest.param(
            "for i in range(8):\n    B[i] = A[i]\n    T.evaluate(T.prefetch(T.address_of(B[i + 16]), 0, 3, 1))",
            8,
            id="a_prefetch_is_no_access",
        ),
        pytest.param("for i in range(8):\n    with T.LetStmt(i * 2) as k:\n        B[k] = A[i]", 15, id="a_let"),
        pytest.param(
            "with T.LetStmt(T.call_extern('int32', 'g')) as k:\n    B[k] = A[0]\n    C[0] = B[k]",
            64,
            id="a_let_of_a_call_with_effects",
        ),
    ],
)
def test_what_an_allocation_keeps(body, size):
    assert size_after(body) == size


def test_the_region_of_a_view_stays_inside_the_buffer():
    body = """
B[0] = A[0]
with T.block("v"):
    T.reads()
    T.writes(B[8:24])
    W = T.match_buffer(B[8:24], (16,), offset_factor=1)
    W[3] = A[1]
C[0] = B[11]
"""
    assert size_after(body) == 24
