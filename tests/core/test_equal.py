"""Structural equality, hash, and the first difference."""

import pytest

from tir.buffer import decl_buffer
from tir.dtype import DType
from tir.equal import assert_structural_equal, first_difference, structural_digest, structural_equal, structural_hash
from tir.expr import Add, FloatImm, IntImm, Let, Var
from tir.function import IRModule
from tir.script import parse
from tir.stmt import BufferStore, Evaluate, For, SeqStmt

F32 = DType("float32")


def kernel(size=16, names=("i", "A", "B"), value="A[i] * 2.0", block="C", extra=""):
    i, a, b = names
    value = value.replace("A[", f"{a}[").replace("[i]", f"[v{i}]")
    return parse(f"""
@T.prim_func
def main({a}: T.Buffer(({size},), "float32"), {b}: T.Buffer(({size},), "float32")):
    for {i} in range({size}):
        with T.block("{block}"):
            v{i} = T.axis.spatial({size}, {i})
            {extra}
            {b}[v{i}] = {value}
""")


@pytest.mark.parametrize(
    "renamed", [{"names": ("j", "X", "Y")}, {"block": "D"}, {"names": ("D", "C", "A"), "block": "B"}]
)
def test_renaming_does_not_matter(renamed):
    a, b = kernel(), kernel(**renamed)
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert structural_digest(a) == structural_digest(b)
    assert first_difference(a, b) is None
    assert_structural_equal(a, b)


def test_names_of_functions_matter_as_calls_use_them():
    a, b = kernel(), kernel(names=("j", "X", "Y"))
    assert structural_equal(IRModule({"f": a}), IRModule({"f": b}))
    assert not structural_equal(IRModule({"f": a}), IRModule({"g": a}))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (kernel(size=17), "buffer_map[0].shape[0].value: 16 != 17"),
        (kernel(value="A[i] + 2.0"), "body.block.body.body.block.body.value: A[vi] * 2.0 != A[vi] + 2.0"),
        (kernel(extra='T.block_attr({"k": 1})'), "annotations"),
        (kernel(value="A[i] * 3.0"), "value.b.value: 2.0 != 3.0"),
    ],
)
def test_first_difference(other, expected):
    base = kernel()
    assert expected in first_difference(base, other)
    assert structural_hash(base) != structural_hash(other)
    with pytest.raises(AssertionError) as caught:
        assert_structural_equal(base, other)
    message = str(caught.value)
    assert expected in message and "left:" in message and "right:" in message


def test_variables_correspond_one_to_one():
    def store(same):
        i, j = Var("i"), Var("j")
        a = decl_buffer((8, 8), name="A")
        body = BufferStore(a, FloatImm(0.0, F32), (i, i if same else j))
        return For(i, IntImm(0), IntImm(8), "serial", For(j, IntImm(0), IntImm(8), "serial", body))

    assert not structural_equal(store(True), store(False), map_free_vars=True)
    assert not structural_equal(store(False), store(True), map_free_vars=True)
    assert structural_equal(store(True), store(True), map_free_vars=True)


def test_free_variables_equal_only_themselves():
    x, y = Var("x"), Var("y")
    assert structural_equal(x + 1, x + 1)
    assert not structural_equal(x + 1, y + 1)
    assert structural_equal(x + y, y + x, map_free_vars=True)
    assert not structural_equal(x + y, x + x, map_free_vars=True)
    assert not structural_equal(Var("x"), Var("x", DType("int64")), map_free_vars=True)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (float("inf"), float("-inf"), False),
        (1.0, 1.0, True),
    ],
)
def test_floats(a, b, equal):
    x, y = FloatImm(a, F32), FloatImm(b, F32)
    assert structural_equal(x, y) is equal
    assert (structural_hash(x) == structural_hash(y)) is equal


def test_dtype_of_constants_matters():
    assert not structural_equal(IntImm(1), IntImm(1, DType("int64")))
    assert not structural_equal(IntImm(1), IntImm(1, DType("bool")))


def test_shared_graphs_are_compared_once():
    def tower(x):
        for _ in range(200):
            x = Add(x, x)
        return x

    x = Var("x")
    assert structural_equal(tower(x), tower(x))
    assert structural_hash(tower(x)) == structural_hash(tower(x))


def test_deep_trees():
    def deep(x):
        for _ in range(5000):
            x = Add(x, IntImm(1))
        return x

    x = Var("x")
    assert structural_equal(deep(x), deep(x))


def test_one_variable_reused_in_sibling_loops_equals_two_variables():
    def loops(i, j):
        make = lambda v: For(v, IntImm(0), IntImm(4), "serial", Evaluate(v + 1))  # noqa: E731
        return SeqStmt((make(i), make(j)))

    i, j, k = Var("i"), Var("j"), Var("k")
    assert structural_equal(loops(i, i), loops(j, k))
    assert structural_hash(loops(i, i)) == structural_hash(loops(j, k))


def test_let_binds():
    def let(v):
        return Let(v, IntImm(1), v + 2)

    assert structural_equal(let(Var("x")), let(Var("y")))
    assert not structural_equal(let(Var("x")), Let(Var("y"), IntImm(1), Var("z") + 2))
