"""Deep expressions print as text that parses back: Python parses 200 nested brackets, and no more."""

from __future__ import annotations

import random

import pytest

import tir
from tir import expr as e
from tir.buffer import Range, decl_buffer
from tir.function import PrimFunc
from tir.script import parse
from tir.stmt import AssertStmt, BufferStore, Evaluate, For, IfThenElse, LetStmt, While, seq
from tir.testing import assert_roundtrip
from tir.visit import with_recursion_limit

A = decl_buffer((64,), "int32", "A")
N = e.Var("n", "int32")


def deep(r: random.Random, depth: int) -> e.Expr:
    """An integer expression of ``depth`` operators, each an operand of the next, on either side."""
    x: e.Expr = N
    i32 = lambda v: e.IntImm(v)
    for _ in range(depth):
        other = r.choice((N, i32(r.randint(2, 9)), e.BufferLoad(A, (N,))))
        kind = r.randrange(12)
        if kind < 5:
            make = (e.Add, e.Sub, e.Mul, e.Max, e.FloorMod)[kind]
            x = make(x, other) if r.random() < 0.5 else make(other, x)
        elif kind == 5:
            x = e.BufferLoad(A, (x,))
        elif kind == 6:
            x = e.Select(e.LT(x, other), other, N)
        elif kind == 7:
            x = e.Call("if_then_else", (e.And(e.NE(N, i32(3)), e.LT(other, x)), N, other), N.dtype)
        elif kind == 8:
            x = e.Cast(tir.DType("int32"), e.Cast(tir.DType("int8"), x))
        elif kind == 9:
            x = e.Call("bitwise_xor", (x, other), N.dtype)
        elif kind == 10:
            v = e.Var("v", "int32")
            x = e.Let(v, x, e.Add(v, other))
        else:
            x = e.Call("shift_right", (other, x), N.dtype)
    return x


def function(body) -> PrimFunc:
    a = e.Var("a", "handle")
    return PrimFunc((a, N), body, buffer_map={a: A})


@pytest.mark.parametrize("depth,seed", [(150, 0), (250, 1), (250, 2), (400, 3), (600, 4), (2000, 5)])
def test_random_deep_expressions_parse_back(depth, seed):
    @with_recursion_limit
    def check():
        func = function(BufferStore(A, deep(random.Random(seed), depth), (e.IntImm(0),)))
        again = parse(func.script())
        tir.assert_structural_equal(again, func)
        assert again.script() == func.script()

    check()


@with_recursion_limit
def chain(make, depth: int = 220) -> e.Expr:
    x: e.Expr = N
    for k in range(depth):
        x = make(x, k)
    return x


CHAINS = {
    "calls": lambda x, k: e.Max(e.IntImm(k), x),
    "parentheses": lambda x, k: e.Sub(e.IntImm(k), x),
    "loads": lambda x, k: e.BufferLoad(A, (x,)),
    "sums": lambda x, k: e.Add(x, N),
    "not": lambda x, k: e.Select(e.Not(e.Not(e.LT(x, N))), N, N),
    "comparisons": lambda x, k: e.Select(e.EQ(e.IntImm(k), x), N, e.IntImm(3)),
}


@pytest.mark.parametrize("make", CHAINS)
def test_every_statement_takes_a_deep_expression(make):
    x = chain(CHAINS[make])
    i = e.Var("i", "int32")
    store = BufferStore(A, N, (x,))
    v = e.Var("v", "int32")
    for s in (
        store,
        For(i, e.IntImm(0), x, "serial", store),
        For(i, x, e.IntImm(4), "parallel", store),
        IfThenElse(e.LT(x, N), store, IfThenElse(e.LT(N, x), store, store)),
        While(e.LT(x, N), store),
        LetStmt(v, x, BufferStore(A, v, (v,))),
        seq([AssertStmt(e.LT(x, N), e.StringImm("deep")), store]),
        Evaluate(e.Call("call_extern", (e.StringImm("f"), x), N.dtype)),
    ):
        assert_roundtrip(function(s))


def test_blocks_take_deep_bindings_predicates_and_regions():
    x = chain(CHAINS["calls"])
    from tir.stmt import Block, BlockRealize, root_block

    vi = e.Var("vi", "int32")
    region = tir.buffer.BufferRegion(A, (Range(e.Max(x, vi), e.IntImm(1)),))
    axis = tir.buffer.IterVar(Range(e.IntImm(0), e.IntImm(64)), vi, "opaque")
    block = Block((axis,), (region,), (region,), "b", BufferStore(A, e.IntImm(0), (e.Max(x, vi),)))
    assert_roundtrip(function(root_block(BlockRealize((x,), e.LT(x, N), block))))


def test_shallow_text_is_as_it_was():
    func = parse(
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), n: T.int32):
    A[0] = """
        + "T.max(" * 50
        + "n"
        + ", n)" * 50
    )
    assert "meta_var" not in func.script()
