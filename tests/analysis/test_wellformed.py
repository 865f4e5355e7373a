"""Well-formedness: each rule broken once."""

from __future__ import annotations

import pytest

import tir
from tir.analysis import wellformed
from tir.buffer import BufferRegion, IterVar, Range, decl_buffer
from tir.expr import TRUE, Add, BufferLoad, Call, IntImm, StringImm, Var, const
from tir.function import PrimFunc
from tir.node import frozendict
from tir.script import parse
from tir.script import tir as T
from tir.stmt import (
    Allocate,
    AssertStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    root_block,
    seq,
)

A = decl_buffer((8, 8), name="A")
LOCAL = decl_buffer((8,), name="local")
I, J, V = Var("i"), Var("j"), Var("v")
ONE = const(1.0, "float32")
AT_V = Range(V, IntImm(1))


def function(body, alloc=()):
    handle = Var("A_handle", "handle")
    return PrimFunc((handle,), root_block(body, alloc), buffer_map=frozendict({handle: A}))


def loop(var, body, **more):
    return For(var, IntImm(0), IntImm(8), more.pop("kind", "serial"), body, **more)


def declares(region):
    """A block that says of ``region`` that it reads it."""
    found = block(STORE)
    return found.replace(block=found.block.replace(reads=(region,)))


def block(body, name="b", values=(I,), variables=(V,)):
    iters = tuple(IterVar(Range(IntImm(0), IntImm(8)), v) for v in variables)
    return BlockRealize(values, TRUE, Block(iters, (), (), name, body))


STORE = BufferStore(A, ONE, (V, V))


def test_a_good_function():
    assert wellformed.check(function(loop(I, block(STORE)))) == []
    wellformed.verify(function(loop(I, block(STORE))))


@pytest.mark.parametrize(
    "body, message",
    [
        (BufferStore(A, ONE, (I, I)), "variable `i` is not defined"),
        (loop(I, loop(I, block(STORE))), "`i` is already defined"),
        (loop(I, block(BufferStore(A, ONE, (V, I)))), "uses `i` of a loop outside it"),
        (loop(I, BufferStore(A, ONE, (I,))), "has 2 dimensions, but 1 indices"),
        (loop(I, BufferStore(A, const(1, "int32"), (I, I))), "a store of int32 into `A`"),
        (
            loop(I, BufferStore(A, ONE, (I, Add(I, const(1, "int64"))))),
            "the operands of `T.Add(i, T.int64(1))` are int32 and int64",
        ),
        (loop(I, BufferStore(A, ONE, (I, ONE))), "indices are integers"),
        (loop(I, BufferStore(LOCAL, ONE, (I,))), "`local` is used but not declared"),
        (seq([loop(I, block(STORE)), loop(I, block(BufferStore(A, ONE, (V, V))))]), "two blocks are called `b`"),
        (loop(I, block(STORE, values=(I, I))), "1 iterators and 2 bindings"),
        (
            loop(
                I,
                loop(J, Evaluate(I), kind="thread_binding", thread="threadIdx.x"),
                kind="thread_binding",
                thread="threadIdx.x",
            ),
            "threadIdx.x is bound inside itself",
        ),
        (For(I, const(0, "int64"), const(8, "int64"), "serial", Evaluate(I)), "`i` is int32, but its minimum int64"),
        (loop(I, Evaluate(I), kind="wild"), "unknown kind"),
        (Evaluate(J), "variable `j` is not defined"),
        (AssertStmt(J > 0, StringImm("positive")), "variable `j` is not defined"),
        (loop(I, declares(BufferRegion(LOCAL, (AT_V,)))), "`local` is used but not declared"),
        (loop(I, declares(BufferRegion(A, (AT_V,)))), "has 2 dimensions, but its region 1"),
        (loop(I, declares(BufferRegion(A, (AT_V, Range(J, IntImm(1)))))), "variable `j` is not defined"),
        (loop(I, declares(BufferRegion(A, (AT_V, Range(V, J))))), "variable `j` is not defined"),
        (
            Evaluate(Call("tvm_access_ptr", (BufferRegion(A, (Range(J, IntImm(1)),) * 2),), "handle")),
            "variable `j` is not defined",
        ),
    ],
)
def test_each_rule(body, message):
    problems = wellformed.check(function(body))
    assert any(message in str(p) for p in problems), [str(p) for p in problems]
    assert all(p.node is not None for p in problems)


def test_use_after_the_allocation():
    inner = Block((), (), (), "inner", BufferStore(LOCAL, ONE, (IntImm(0),)), None, (LOCAL,))
    after = BufferStore(A, BufferLoad(LOCAL, (IntImm(0),)), (IntImm(0), IntImm(0)))
    problems = wellformed.check(function(seq([BlockRealize((), TRUE, inner), after])))
    assert ["outside its allocation" in str(p) for p in problems] == [True]


def test_a_vector_in_an_index_that_is_not_the_last() -> None:
    with pytest.raises(
        tir.WellFormedError, match="index 0 of `A` is a vector of 4 lanes; only the last index may be one"
    ):
        parse(
            "@T.prim_func\n"
            'def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):\n'
            "    B[T.ramp(0, 1, 4)] = A[T.ramp(0, 1, 4), 2]\n"
        )


def _parts():
    """A well-formed program, checked, and its parts."""

    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        B = T.alloc_buffer((8, 8), "float32")
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0
        for x, y in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [x, y])
                C[vi, vj] = B[vi, vj] + 1.0

    assert wellformed.check(f) == []
    root = f.body
    outer, second = root.block.body.stmts
    return f, root, outer, second


def _with(f, root, body, **changes):
    return f.with_body(root.replace(block=root.block.replace(body=body, **changes)))


def test_parts_known_to_be_good_are_checked_where_they_are():
    f, root, outer, second = _parts()
    assert not wellformed.check(f)
    block = outer.body.body
    wrong = {
        "loop left out": (seq([outer.body, second]), {}, "variable `i` is not defined here"),
        "twice": (seq([outer, outer, second]), {}, "two blocks are called `B`; block names are unique in a function"),
        "two blocks of one name": (
            seq(
                [outer, second, outer.replace(body=outer.body.replace(body=block.replace(block=block.block.replace())))]
            ),
            {},
            "two blocks are called `B`; block names are unique in a function",
        ),
        "buffer gone": (seq([outer, second]), {"alloc_buffers": ()}, "buffer `B` is used but not declared here"),
        "loop in itself": (outer.replace(body=outer), {}, "loop variable `i` is already defined outside"),
        "axis in itself": (
            For(Var("t"), IntImm(0), IntImm(4), "thread_binding", outer, thread="threadIdx.x"),
            {},
            "thread axis threadIdx.x is bound inside itself with another extent",
        ),
        "axis around a block": (
            For(Var("t"), IntImm(0), IntImm(4), "thread_binding", root, thread="threadIdx.x"),
            {"alloc_buffers": ()},
            "thread axis threadIdx.x is bound inside itself with another extent",
        ),
        "allocated twice": (
            BlockRealize((), TRUE, Block((), (), (), "again", root, alloc_buffers=root.block.alloc_buffers)),
            {},
            "buffer `B` is allocated twice",
        ),
    }
    for name, (body, changes, message) in wrong.items():
        broken = _with(f, root, body, **changes)
        found = [p.message for p in wellformed.check(broken)]
        assert message in found, (name, found)


def test_a_known_part_that_a_block_hides_its_loops_from():
    f, root, outer, _ = _parts()
    inner = outer.body  # uses i of the loop around
    around = Block((IterVar(Range(IntImm(0), IntImm(8)), Var("vz"), "spatial"),), (), (), "hides", inner)
    hiding = outer.replace(body=BlockRealize((IntImm(0),), TRUE, around))
    found = [p.message for p in wellformed.check(_with(f, root, hiding))]
    assert "block `hides` uses `i` of a loop outside it; bind it to an iterator of the block" in found


def test_use_of_a_declared_buffer_after_its_allocation():
    store = BufferStore(LOCAL, ONE, (IntImm(0),))
    inner = Allocate(LOCAL.data, LOCAL.dtype, LOCAL.shape, TRUE, DeclBuffer(LOCAL, store))
    problems = wellformed.check(function(seq([inner, store])))
    assert [str(p).splitlines()[0] for p in problems] == ["buffer `local` is used outside its allocation"]


def test_use_after_a_realized_buffer():
    store = BufferStore(LOCAL, ONE, (IntImm(0),))
    inner = BufferRealize(LOCAL, (Range(IntImm(0), IntImm(8)),), TRUE, store)
    problems = wellformed.check(function(seq([inner, store])))
    assert [str(p).splitlines()[0] for p in problems] == ["buffer `local` is used outside its allocation"]
