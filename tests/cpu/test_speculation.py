"""Loads under a condition that may run before it: their addresses are in bounds whatever it gives."""

from __future__ import annotations

import pytest

import tir
from codegen.llvm.speculation import speculatable_loads
from tir.script import parse


def found(body: str, head: str = 'A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "bool")') -> set[str]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    func = tir.lower(parse(f"@T.prim_func\ndef f({head}):\n{lines}\n"))
    return {repr(load) for load in speculatable_loads(next(iter(func.functions.values())))}


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("for i in range(8):\n    B[i] = A[i] and B[i]", {"B[i]"}),
        ("for i in range(8):\n    B[i] = A[i] or B[i]", {"B[i]"}),
        ("for i in range(8):\n    B[i] = i < 7 and A[i + 1]", set()),
        ("for i in range(8):\n    B[i] = i > 0 and A[i - 1]", set()),
        ("for i in range(8):\n    B[i] = T.if_then_else(i > 3, A[i - 4], A[i])", {"A[i]"}),
        ("for i in range(9):\n    if i < 8:\n        B[i] = A[i] and B[i]", {"B[i]"}),
        ("for i in range(9):\n    if i > 7:\n        B[0] = A[0] and B[i]", set()),
        ("for i in T.vectorized(8):\n    B[i] = A[i] and B[i]", {"B[0:8]"}),
        ("for i in T.vectorized(8):\n    B[i] = A[i] and A[7 - i]", {"A[T.Ramp(7, -1, 8)]"}),
        (
            "for i in T.vectorized(8):\n    B[i] = A[i] and A[7 - i // 2]",
            {"A[T.Broadcast(7, 8) - T.Ramp(0, 1, 8) // T.Broadcast(2, 8)]"},
        ),
        (
            "for i in T.vectorized(8):\n    B[i] = A[i] and A[4 + i // 2]",
            {"A[T.Ramp(0, 1, 8) // T.Broadcast(2, 8) + T.Broadcast(4, 8)]"},
        ),
        ("for i in T.vectorized(8):\n    B[i] = A[i] and A[5 + i // 2]", set()),
        ("for i in range(8):\n    B[i] = A[i] and A[T.cast(B[i], 'int32') * 9]", {"B[i]"}),
        ("for i in range(8):\n    B[i] = T.if_then_else(T.isnullptr(A.data), B[i], A[i])", {"B[i]"}),
    ],
)
def test_the_loops_bound_the_address(body, loads):
    assert found(body) == loads


def test_sizes_that_are_known_at_run_time_only():
    head = "a: T.handle, b: T.handle"
    body = """n, m = T.int32(), T.int32()
A = T.match_buffer(a, (n, m), "bool")
B = T.match_buffer(b, (n, m), "bool")
for i, j in T.grid(n, m):
    B[i, j] = A[i, j] and {}"""
    assert found(body.format("B[i, j]"), head) == {"B[i * m + j]"}
    assert found(body.format("B[i, j + 1]"), head) == set()


def test_only_memory_whose_size_is_known():
    strided = 'A: T.Buffer((8,), "bool"), b: T.handle'
    assert (
        found('B = T.match_buffer(b, (8,), "bool", strides=[2])\nfor i in range(8):\n    A[i] = A[i] and B[i]', strided)
        == set()
    )
    pointer = 'A: T.Buffer((8,), "bool"), p: T.handle("bool")'
    assert (
        found('B = T.decl_buffer((8,), "bool", data=p)\nfor i in range(8):\n    A[i] = A[i] and B[i]', pointer) == set()
    )
    wider = 'a: T.handle, C: T.Buffer((8,), "bool")'
    body = 'n = T.int32()\nA = T.match_buffer(a, (n,), "int8")\nB = T.decl_buffer((8,), "int32", data=A.data)\nfor i in range(8):\n    C[i] = C[i] and B[i] > 0'
    assert found(body, wider) == set()


def test_a_load_in_two_loops_counts_where_it_is_safe_in_both():
    func = parse(
        '@T.prim_func\ndef f(A: T.Buffer((8,), "bool")):\n    for i in range(8):\n        A[i] = A[i] and A[7 - i]'
    )
    loop = func.body
    assert len(speculatable_loads(func)) == 1
    longer = loop.replace(extent=tir.expr.IntImm(9))
    assert not speculatable_loads(func.with_body(tir.stmt.SeqStmt((loop, longer))))


def test_scalars_for_some_lanes_of_a_vector():
    """One that is in bounds whatever the lanes ask is no branch; vectors stay masked."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), X: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), n: T.int32):
    for i in range(8):
        for k in T.vectorized(16):
            if k < n:
                B[i, k] = X[i, k] * A[i] + A[i + n]
""")
    (lowered,) = tir.lower(func, target="llvm").functions.values()
    assert {repr(load) for load in speculatable_loads(lowered)} == {"A[i]"}
