"""Loops that LLVM's loop vectorizer must not have, and those it keeps: conditional divisions by run-time values."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.testing import assert_same_result

CONDITIONAL = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((256,), "int32"), m: T.int32, d: T.int32, n: T.int32):
    for j in range(n):
        if j >= m and j < n - 20:
            {}
"""
UNSIGNED = 'T.Cast("int32", T.Cast("uint32", {}) {} T.Cast("uint32", d))'
VALUES = {
    "unsigned remainder": UNSIGNED.format("m", "%"),
    "unsigned quotient": UNSIGNED.format("m", "//"),
    "nonnegative remainder": "T.max(m, 0) % d",
    "nonnegative quotient": "T.truncdiv(T.max(m, 0), T.max(d, 0))",
    "signed": "m % d",
    "nested": "T.max(m, 0) * 5 % T.max(T.max(m, 0) // T.max(d, 1), 2)",
    "the same for a vector's lanes": UNSIGNED.format("(j // 64 + m)", "%"),
    "of loaded values": "T.max(A[m], 0) % T.max(A[d], 1)",
}
USES = {"as a value": "B[j] = {}", "to store at": "B[j - 3 + ({})] = j", "to load at": "B[j] = A[{}]"}
VECTORS_OFF = '!"llvm.loop.vectorize.enable", i1 false'


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", VALUES)
def test_a_conditional_division_is_right_in_every_lane(value, use):
    func = parse(CONDITIONAL.format(USES[use].format(VALUES[value])))
    a = np.random.default_rng(0).integers(0, 7, 64).astype("int32")
    found, wanted = np.zeros(256, "int32"), np.zeros(256, "int32")
    tir.build(func)(a, found, 7, 3, 203)
    tir.build(func, "interpreter")(a, wanted, 7, 3, 203)
    np.testing.assert_array_equal(found, wanted)


def test_a_conditional_load_at_a_remainder_by_a_symbolic_size():
    func = parse("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int32")
    B = T.match_buffer(b, (n, n, n + 1), "int32")
    for i0 in range(n):
        for i1 in range(2, 2 + n):
            for j in range(n * 2):
                if j >= i1 - 2 and j < i1 + n - 1:
                    B[i0, i1 - 2, j - i1 + 2] = A[T.max(i0 - 2, 0) % n, T.max(i1 - 4, 0) % 4]
""")
    a = np.arange(20, dtype="int32").reshape(5, 4)
    found, wanted = np.zeros((5, 5, 6), "int32"), np.zeros((5, 5, 6), "int32")
    tir.build(func)(a, found)
    tir.build(func, "interpreter")(a, wanted)
    np.testing.assert_array_equal(found, wanted)


def test_an_unconditional_let_that_llvm_may_move_under_the_condition_of_its_use():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((256,), "int32"), d: T.int32, n: T.int32):
    for j in range(n):
        q: T.int32 = T.max(j // 64 + 7, 0) % d
        if j >= 7 and j < n - 20:
            B[j] = A[q]
""")
    a = np.arange(64, dtype="int32")
    found, wanted = np.zeros(256, "int32"), np.zeros(256, "int32")
    tir.build(func)(a, found, 3, 203)
    tir.build(func, "interpreter")(a, wanted, 3, 203)
    np.testing.assert_array_equal(found, wanted)


def source(body: str) -> str:
    return tir.build(parse(CONDITIONAL.format(body))).source("llvm")


def test_only_loops_with_a_condition_and_a_varying_run_time_division_lose_the_vectorizer():
    assert VECTORS_OFF in source("B[j] = A[(j + m) % d]")
    assert VECTORS_OFF in source("B[j] = A[T.max(A[m], 0) % T.max(A[d], 1)]")
    assert VECTORS_OFF not in source("B[j] = A[T.max(m, 0) % d]")  # computed before the loop
    assert VECTORS_OFF not in source("B[j] = A[j % 3]")
    plain = CONDITIONAL.replace("        if j >= m and j < n - 20:\n    ", "")
    assert VECTORS_OFF not in tir.build(parse(plain.format("B[j] = A[(j + m) % d]"))).source("llvm")


def test_a_division_computed_ahead_fails_only_where_it_is_used():
    module = tir.build(parse(CONDITIONAL.format("B[j] = T.max(m, 0) % d")))
    a, b = np.zeros(64, "int32"), np.zeros(256, "int32")
    module(a, b, 300, 0, 203)  # no iteration fulfils the condition
    with pytest.raises(tir.RunError, match="division by zero"):
        module(a, b, 7, 0, 203)


def test_a_division_that_occurs_twice_is_computed_ahead():
    body = "B[j] = T.max(m, 0) % d + T.max(m, 0) % d"
    a, b = np.zeros(64, "int32"), np.zeros(256, "int32")
    tir.build(parse(CONDITIONAL.format(body)))(a, b, 7, 3, 203)
    assert set(b[7:183].tolist()) == {2}


EDGES = [0, 1, 2, 3, 5, 6, 7, 9, 10, 63, 64, 65, 641, 1000, 2**15 - 1, 2**16, 2**16 + 1, 2**30 - 1, 2**30, 2**30 + 1, 2**31 - 2, 2**31 - 1]  # fmt: skip


@pytest.mark.parametrize("kind", ["serial", "vectorized", "parallel"])
def test_a_division_by_an_invariant_divisor_is_exact_for_every_value(kind):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), Q: T.Buffer((64,), "int32"), R: T.Buffer((64,), "int32"), d: T.int32):
    for k in range(2):
        for j in T.{kind}(64):
            if j >= k:
                Q[j] = T.max(A[j], 0) // T.max(d, 0)
                R[j] = T.truncmod(T.max(A[j], 0), T.max(d, 0))
""")
    module = tir.build(func)
    rng = np.random.default_rng(0)
    q, r = np.zeros(64, "int32"), np.zeros(64, "int32")
    for d in [*EDGES[1:], *rng.integers(1, 2**31, 20).tolist(), *(2 ** rng.uniform(0, 31, 20)).astype(int).tolist()]:
        near = [x for c in (1, 2, 3, 2**31 // d) for x in (c * d - 1, c * d, c * d + 1)]
        a = (
            np.array([*EDGES, *near, *rng.integers(0, 2**31, 64 - len(EDGES) - len(near))])
            .clip(0, 2**31 - 1)
            .astype("int32")
        )
        module(a, q, r, d)
        np.testing.assert_array_equal(q, a // d)
        np.testing.assert_array_equal(r, a % d)
    with pytest.raises(tir.RunError, match="division by zero"):
        module(a, q, r, 0)


def test_a_fused_row_with_a_tail_has_no_division_left_in_its_loop():
    func = parse("""
@T.prim_func
def main(a: T.handle, b: T.handle, s: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    S = T.match_buffer(s, (n,), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj] - S[vi])
""")
    sch = tir.Schedule(func)
    sch.split(sch.fuse("i", "j"), [None, 64])
    module = tir.build(sch.mod)
    text = module.source("llvm")
    assert VECTORS_OFF not in text
    assert text.count("udiv") == 1  # the reciprocal, before the loops
    rng = np.random.default_rng(0)
    a, s = rng.random((7, 45), "float32"), rng.random(7, "float32")
    b = np.zeros_like(a)
    module(a, b, s)
    np.testing.assert_allclose(b, np.exp(a - s[:, None]), rtol=1e-5)


LAST_BITS = """
@T.prim_func
def main(A: T.Buffer((4, {m}), "{a}"), B: T.Buffer(({m}, {q}), "{a}"), C: T.Buffer((4, {n}), "{c}")):
    for i in range(4):
        R = T.decl_buffer(({n},), "{c}")
        for f in range({n}):
            {value}
        for k, j in T.grid({m}, {q}):
            C[i, k * {q} + j] = R[j * {m} + k]
"""
BY_LAST_BITS = {
    "remainder": "R[f] = T.Cast('{c}', A[i, f % {m}]) * T.Cast('{c}', B[f % {m}, f // {m}])",
    "mask": "R[f] = T.Cast('{c}', A[i, T.bitwise_and(f, {m} - 1)]) * T.Cast('{c}', B[f % {m}, f // {m}])",
    "named": "x: T.int32 = f % {m}\n            R[f] = T.Cast('{c}', A[i, x]) * T.Cast('{c}', B[x, f // {m}])",
}


@pytest.mark.parametrize(
    "a, c", [("float32", "float32"), ("int8", "int32"), ("float8_e5m2", "float16"), ("float64", "float64")]
)
@pytest.mark.parametrize("m, n", [(4, 16), (4, 32), (8, 64), (4, 128), (16, 128)])
@pytest.mark.parametrize("value", BY_LAST_BITS)
def test_last_bits_of_a_counter_in_an_index(a, c, m, n, value):
    """Fused loops: LLVM 22 loads whole vectors from the row's first element on."""
    sizes = {"a": a, "c": c, "m": m, "n": n, "q": n // m}
    func = parse(LAST_BITS.format(value=BY_LAST_BITS[value].format(**sizes), **sizes))
    assert_same_result(func, func, engines=["llvm"])
