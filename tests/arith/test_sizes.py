"""What is known of sizes: of buffers, of loops that are entered, and what guards it saves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tir
from tir.arith import Analyzer, simplify_stmt
from tir.arith.pointwise import compile_expr
from tir.buffer import Range
from tir.expr import EQ, FloorMod, Mod, Var, const
from tir.script import parse

ROWS = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "float32")
    B = T.match_buffer(b, (4, n), "float32")
    S = T.alloc_buffer((4, n), "float32")
    for j, k in T.grid(4, n):
        with T.block("S"):
            vj, vk = T.axis.remap("SS", [j, k])
            S[vj, vk] = A[vj, vk] * T.float32(2)
    for j, k in T.grid(4, n):
        with T.block("B"):
            vj, vk = T.axis.remap("SS", [j, k])
            B[vj, vk] = S[vj, vk] + A[vj, vk]
"""


def same(sch):
    for n in (0, 1, 5, 33):
        a = np.arange(4 * n, dtype="float32").reshape(4, n)
        for target in ("interpreter", "llvm"):
            b = np.zeros((4, n), "float32")
            tir.build(sch.mod, target=target)(a, b)
            np.testing.assert_array_equal(b, a * 3)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_a_copy_of_symbolic_size_has_plain_loops(scope):
    sch = tir.Schedule(parse(ROWS))
    copy = sch.cache_read("B", "S", scope)
    sch.reverse_compute_at("B", sch.get_loops(copy)[0])
    assert "T.max" not in sch.mod.script()
    assert "T.where" not in sch.mod.script()
    same(sch)


def test_what_moves_below_a_fused_loop_is_guarded_by_its_tail_alone():
    sch = tir.Schedule(parse(ROWS))
    inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 32])[1]
    sch.compute_at("S", inner)
    text = sch.mod.script()
    assert ">= 0" not in text
    assert "% n < n" not in text
    same(sch)


def test_no_parameter_has_a_negative_size():
    func = parse("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((2,), "int32"), m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    if n >= 0:
        B[0] = T.max(n, 0)
    if m >= 0:
        B[1] = T.max(m, 0)
""")
    text = tir.transform.simplify(func).script()
    assert "if n" not in text and "T.max(n" not in text
    assert "if m" in text and "T.max(m" not in text


@pytest.mark.parametrize("divisor", [1, 2, 3, 8])
@pytest.mark.parametrize("shift", [-5, 0, 1, 7])
@pytest.mark.parametrize("limit", [-2, 0, 1, 3])
@pytest.mark.parametrize("below", [False, True])
def test_a_bound_of_a_quotient_is_one_of_what_is_divided(divisor, shift, limit, below):
    n = Var("n")
    quotient = (n + shift) // divisor
    known = Analyzer()
    known.assume(quotient <= limit if below else quotient >= limit)
    values = range(-60, 61)
    if below:
        last = max(x for x in values if (x + shift) // divisor <= limit)
        assert known.can_prove(n <= last)
        assert not known.can_prove(n <= last - 1)
    else:
        first = min(x for x in values if (x + shift) // divisor >= limit)
        assert known.can_prove(n >= first)
        assert not known.can_prove(n >= first + 1)


def test_a_loop_that_is_entered_has_iterations():
    for step, extra in itertools.product((2, 32), (0, 1)):
        n, o = Var("n"), Var("o")
        known = Analyzer()
        known.bind(o, Range(const(0), (n + step - 1 + extra) // step))
        assert known.can_prove(n >= 1 - extra)
        assert not known.can_prove(n >= 2 - extra)


@pytest.mark.parametrize("operator", [FloorMod, Mod])
@pytest.mark.parametrize("rest", [-2, -1, 0, 1, 2, 3])
def test_a_known_remainder_is_known_of_what_it_is_of(operator, rest):
    """Of a truncating operator only that it is 0: -1 rem 4 is -1, and 3 rem 4 is 3."""
    n = Var("n")
    remainder = compile_expr(operator(n, const(4)), [n])
    values = [x for x in range(-40, 41) if remainder(x) == rest]
    known = Analyzer()
    known.assume(EQ(operator(n, const(4)), const(rest)))
    step, base = known.modular(n * 3 + 1)
    assert all((3 * x + 1 - base) % step == 0 for x in values)
    if values and (operator is FloorMod or rest == 0):
        assert (step, base) == (12, (3 * rest + 1) % 12)


CLIPPED = """
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    B = T.alloc_buffer((T.max(T.min(n - 1, 4), 0),), "float32")
    for i in range(T.min(n - 1, 4)):
        B[i] = A[i]
    for i in range(T.min(n - 1, 4)):
        A[i] = B[i]
"""


def test_a_shape_that_loops_say_more_of_stays_the_shape_of_the_buffer():
    func = parse(CLIPPED)
    tir.assert_structural_equal(func.with_body(simplify_stmt(func.body)), func)
