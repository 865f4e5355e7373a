"""The report of a module: every marked loop, what is held in registers, and why not."""

from __future__ import annotations

import pytest

import tir
from codegen.build import build, compile_lowered
from tests.hand_schedules.gemm import scheduled_gemm
from tir.script import parse
from tir.target import vector_registers


def rows(body: str, lowered: bool = False) -> dict[str, str]:
    """``loop asked`` to outcome, of a function over A, B (64 by 33), idx and n with the statements ``body``."""
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    func = parse(
        "@T.prim_func\n"
        'def f(A: T.Buffer((64, 33), "float32"), B: T.Buffer((64, 33), "float32"), D: T.Buffer((64,), "int32"),'
        f" n: T.int32):\n{lines}\n"
    )
    module = compile_lowered(tir.lower(func)) if lowered else build(func)
    return {f"{r.loop} {r.asked}": r.outcome for r in module.report}


@pytest.mark.parametrize(
    "body, outcome",
    [
        ("for i in T.vectorized(16):\n    B[0, i] = A[1, i]", "vectors of 16 lanes: 2 contiguous"),
        ("for i in T.vectorized(16):\n    B[0, i] = A[1, 3]", "vectors of 16 lanes: 1 contiguous, 1 broadcast"),
        ("for i in T.vectorized(16):\n    B[0, i] = A[0, i * 2]", "vectors of 16 lanes: 1 contiguous, 1 strided"),
        ("for i in T.vectorized(16):\n    B[0, i] = A[D[i], 0]", "vectors of 16 lanes: 2 contiguous, 1 gathered"),
        ("for i in T.vectorized(16):\n    if i < n:\n        B[0, i] = A[1, i]", "2 contiguous, under masks"),
        ("for i in T.vectorized(n):\n    B[0, i] = A[1, i]", "left a loop: extent `n` is not a constant"),
        (
            'for i in T.vectorized(8):\n    B[0, i] = T.call_extern("float32", "sinf", A[1, i])',
            "left a scalar loop: call_extern has no vector form",
        ),
        (
            'for i in T.vectorized(8):\n    B[1, i] = A[1, i]\n    B[0, i] = T.call_extern("float32", "sinf", A[1, i])',
            "; in part a scalar loop: call_extern has no vector form",
        ),
        (
            'for i in T.vectorized(8):\n    with T.attr(0, "pragma_note", i):\n        B[1, i] = A[1, i]',
            "left a scalar loop: the attribute pragma_note differs between lanes",
        ),
        (
            'for i in T.vectorized(8):\n    with T.attr(0, "pragma_note", n):\n        B[1, i] = A[1, i]',
            "vectors of 8 lanes: 2 contiguous",
        ),
        ("for i in T.vectorized(1):\n    B[1, i] = A[1, i]", "gone: one lane"),
        ("for i in T.unroll(4):\n    B[1, i] = A[1, i]", "unrolled"),
        ("for i in T.unroll(n):\n    B[1, i] = A[1, i]", "left a loop: extent `n` is not a constant"),
        (
            "for i in T.unroll(64):\n    for j in T.unroll(33):\n        B[i, j] = A[i, j]",
            "left a loop: 2112 copies of its statements, 1024 are the most",
        ),
        ("for i in T.parallel(64):\n    B[i, 0] = A[i, 0]", "a team of threads, equal shares"),
        ("for i in T.parallel(1):\n    B[i, 0] = A[i, 0]", "one thread of a team"),
        ("for i in T.parallel(0):\n    B[i, 0] = A[i, 0]", "gone: no iteration"),
        ("for i in T.vectorized(0):\n    B[i, 0] = A[i, 0]", "gone: no iteration"),
        ("for i in T.unroll(0):\n    B[i, 0] = A[i, 0]", "gone: no iteration"),
    ],
)
def test_what_became_of_a_marked_loop(body, outcome):
    (mark,) = {k.partition("(")[0] for k in body.split("T.")[1:2]}
    asked = {"vectorized": "vectorized", "unroll": "unrolled", "parallel": "parallel"}[mark]
    assert outcome in rows(body)[f"i {asked}"]


def test_a_parallel_loop_in_another():
    found = rows("for i in T.parallel(64):\n    for j in T.parallel(33):\n        B[i, j] = A[i, j]")
    assert found["j parallel"] == "serial: inside another parallel loop"


def test_loops_of_one_name_are_told_apart():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((64, 32), "float32"), n: T.int32):
    for i in T.vectorized(32):
        A[0, i] = T.float32(1)
    for i in T.unroll(n):
        A[1, i] = T.float32(1)
    for i in T.vectorized(n):
        A[2, i] = T.float32(1)
""")
    first, second, third = build(func).report
    assert first.outcome == "vectors of 32 lanes: 1 contiguous"
    assert second.outcome.startswith("left a loop") and second.asked == "unrolled"
    assert third.outcome.startswith("left a loop") and third.asked == "vectorized"


def test_what_loops_hold_in_registers_and_why_not():
    held = rows("for k in range(64):\n    B[0, 0] = B[0, 0] + A[k, 0]")
    assert held == {"k registers": "`B` is held in registers"}
    sometimes = rows("for k in range(64):\n    if D[k] > 0:\n        B[0, 0] = B[0, 0] + A[k, 0]")
    assert "`B` is loaded and stored each time: some of it is not touched" in sometimes["k registers"]
    many = rows(
        "for k in range(64):\n    for i in T.unroll(3):\n        for j in T.unroll(33):\n            B[i, j] += A[k, 0]"
    )
    assert "more than 64 elements" in many["k registers"]
    overlap = rows("for k in range(64):\n    B[0, n] += A[k, 0]\n    B[0, 1] += A[k, 1]")
    assert "its accesses may overlap" in overlap["k registers"]


def test_local_buffers():
    text = """
tile = T.alloc_buffer((8,), "float32", scope="local")
for j in T.unroll(8):
    tile[j] = A[0, j]
for j in KIND(8):
    B[0, j] = tile[j]
"""
    assert rows(text.replace("KIND", "T.unroll"))["tile registers"] == "registers"
    assert rows(text.replace("KIND", "range"))["tile registers"] == "memory on the stack: index `j` is not a constant"


def test_a_module_that_was_lowered_elsewhere():
    assert (
        "extent `n` is not a constant"
        in rows("for i in T.unroll(n):\n    B[1, i] = A[1, i]", lowered=True)["i unrolled"]
    )


def test_the_report_of_a_matrix_product():
    report = build(scheduled_gemm(100, 100, 100, 1).mod).report
    shown = str(report)
    assert all(r.outcome.startswith(("vectors of", "unrolled", "`tiles` is held", "registers")) for r in report), shown
    assert any(r.asked == "registers" and f"x {vector_registers().lanes()}" in r.extent for r in report)
    assert shown.splitlines()[0].split() == ["function", "loop", "asked", "extent", "outcome"]
    assert "nothing is held" in str(
        build(parse("@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    A[0] = 1.0")).report
    )
