"""Nodes made by hand take numbers of Python where they have expressions, in the type that the place asks for."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.expr import Expr

I, X, C = tir.Var("i"), tir.Var("x", "float16"), tir.Var("c", "bool")
A = tir.decl_buffer((8,), "float16", "A")
STORE = tir.BufferStore(A, X, (I,))
ARITHMETIC = [tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max]
COMPARISONS = [tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE]


def shown(node):
    """The classes, and the types of the expressions, in a node."""
    kinds = [f"{type(c).__name__} {c.dtype}" if isinstance(c, Expr) else type(c).__name__ for c in node.children()]
    return ", ".join(kinds)


@pytest.mark.parametrize("kind", [*ARITHMETIC, *COMPARISONS])
def test_a_number_takes_the_type_of_the_other_operand(kind):
    for node in (kind(X, 1), kind(1, X), kind(X, 0.5), kind(np.float32(0.5), X)):
        assert {node.a.dtype, node.b.dtype} == {"float16"}
        assert node.dtype == ("float16" if kind in ARITHMETIC else "bool")
    wide = kind(tir.Var("n", "int64"), 2**40)
    assert (wide.a.dtype, wide.b.dtype, wide.b.value) == ("int64", "int64", 2**40)


@pytest.mark.parametrize("kind", [*ARITHMETIC, *COMPARISONS])
def test_two_numbers_and_what_is_neither_are_refused(kind):
    for operands in ((1, 2), (1, "x"), ([], 1.5)):
        with pytest.raises(TypeError, match=f"{kind.__name__} takes two expressions, or one and a number"):
            kind(*operands)
    with pytest.raises(TypeError, match="takes expressions and numbers, not"):
        kind(X, "x")
    with pytest.raises(TypeError, match="with the float 0.5"):
        kind(I, 0.5)


NODES = [
    (lambda: tir.And(C, True), "Var bool, IntImm bool"),
    (lambda: tir.Or(1, C), "IntImm bool, Var bool"),
    (lambda: tir.Not(False), "IntImm bool"),
    (lambda: tir.Select(True, 1, X), "IntImm bool, FloatImm float16, Var float16"),
    (lambda: tir.Select(C, I, X.astype("int32")), "Var bool, Var int32, Cast int32"),
    (lambda: tir.Cast("float32", 1), "IntImm int32"),
    (lambda: tir.Ramp(tir.Var("n", "int64"), 1, 4), "Var int64, IntImm int64"),
    (lambda: tir.Ramp(0, 1, 4), "IntImm int32, IntImm int32"),
    (lambda: tir.Broadcast(1.0, 4), "FloatImm float32"),
    (lambda: tir.Let(X, 3, X), "Var float16, FloatImm float16, Var float16"),
    (lambda: tir.BufferLoad(A, (0,)), "Buffer, IntImm int32"),
    (lambda: tir.BufferStore(A, 1, [0]), "Buffer, FloatImm float16, IntImm int32"),
    (
        lambda: tir.For(tir.Var("n", "int64"), 0, 8, "serial", STORE),
        "Var int64, IntImm int64, IntImm int64, BufferStore",
    ),
    (lambda: tir.While(True, STORE), "IntImm bool, BufferStore"),
    (lambda: tir.IfThenElse(1, STORE), "IntImm bool, BufferStore"),
    (lambda: tir.LetStmt(X, 3, STORE), "Var float16, FloatImm float16, BufferStore"),
    (lambda: tir.AssertStmt(True, "no"), "IntImm bool, StringImm handle"),
    (lambda: tir.Evaluate(0), "IntImm int32"),
    (lambda: tir.AttrStmt(I, "k", 1, STORE), "Var int32, IntImm int32, BufferStore"),
    (lambda: tir.BlockRealize((0,), True, tir.Block((), (), (), "b", STORE)), "IntImm int32, IntImm bool, Block"),
]


@pytest.mark.parametrize("make, expected", NODES)
def test_numbers_in_other_nodes(make, expected):
    node = make()
    assert shown(node) == expected
    assert str(node)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tir.Not([]),
        lambda: tir.Evaluate(None),
        lambda: tir.BufferStore(A, {}, (I,)),
        lambda: tir.BufferLoad(A, (None,)),
        lambda: tir.For(I, 0, object(), "serial", STORE),
    ],
)
def test_what_is_no_expression_and_no_number_is_refused(make):
    with pytest.raises(TypeError, match="expected an expression or a number"):
        make()


def test_a_program_of_such_nodes_runs():
    i, handle, B = tir.Var("i"), tir.Var("h", "handle"), tir.decl_buffer((8,), "float32", "B")
    double = tir.Mul(tir.BufferLoad(B, (i,)), 2)
    body = tir.For(i, 0, 8, "serial", tir.IfThenElse(tir.LT(i, 4), tir.BufferStore(B, double, (i,))))
    func = tir.PrimFunc((handle,), body, buffer_map={handle: B})
    data = np.ones(8, "float32")
    tir.interp.run(func, data)
    assert data.tolist() == [2] * 4 + [1] * 4


@pytest.mark.parametrize("kind", ARITHMETIC)
def test_constants_are_folded_to_what_the_executor_computes(kind):
    func = tir.script.parse(f"""
@T.prim_func
def f(x: T.int32, y: T.int32, A: T.Buffer((1,), "int32")):
    A[0] = T.{kind.__name__}(x, y)
""")
    made = {tir.FloorDiv: tir.floordiv, tir.FloorMod: tir.floormod, tir.Div: tir.truncdiv, tir.Mod: tir.truncmod}
    folded = (
        made.get(kind) or getattr(tir.expr, kind.__name__.lower(), None) or getattr(tir, f"{kind.__name__.lower()}_")
    )
    out = np.zeros(1, "int32")
    for x in (-7, -4, 0, 3, 9):
        for y in (-3, 1, 2, 5):
            tir.interp.run(func, x, y, out)
            assert folded(tir.IntImm(x), tir.IntImm(y)).value == out[0], (x, y)
