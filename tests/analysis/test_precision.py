"""Answers that are exact: one element more, another name or another operand changes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tir
from codegen.cuda.plan import pack
from tests.prim_checks import refused, schedule
from tir.analysis.block_regions import block_access_region
from tir.analysis.dependence.order_question import same_order
from tir.analysis.wellformed import verify
from tir.arith.index_map import IndexMap
from tir.expr import IntImm, StringImm, Var
from tir.schedule.primitive import PRIMITIVES, primitive, require_same_meaning
from tir.schedule.state import BlockRef, State
from tir.script import parse
from tir.stmt import Block, For, Stmt
from tir.visit import refresh, rewrite, walk


@pytest.mark.parametrize(
    ("index", "region"),
    [
        ("(vi * 16 + j + 10) % 8", "A[2:6]"),  # 10 to 13
        ("(vi * 16 + j + 6) % 8", "A[0:8]"),  # 6 to 9: round the end
        ("(j * j * j) % 8", "A[0:4]"),  # no linear form: every value is tried
        ("I[j] % 8", "A[0:64]"),  # memory: the whole dimension
        ("(vi * 16 + j + 10) // 8", "A[vi * 2 + 1]"),
    ],
)
def test_regions_of_quotients_and_remainders(index, region):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            for j in range(4):
                B[vi] = A[{index}]
""")
    sch = tir.Schedule(func)
    reads, _ = block_access_region(sch.get(sch.get_block("B")))
    assert region in [repr(r) for r in reads]


@pytest.mark.parametrize(("index", "legal"), [("i + 7", True), ("i + 8", False), ("i - 1", False)])
def test_one_element_past_the_end_is_refused(index, legal):
    func = parse(f"""
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(9):
        B[i] = A[{index}]
""")
    if legal:
        tir.build(func)
    else:
        with pytest.raises(tir.BuildError, match=r"A\[(16|-1)\]|out of bounds"):
            tir.build(func)


def test_a_loop_variable_bound_twice_is_one_problem():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    for i in range(4):
        for j in range(4):
            A[j] = 0
        A[i] = 1
""")
    outer = func.body
    inner = outer.body.stmts[0]
    twice = rewrite(
        func.body, lambda n: n.replace(loop_var=outer.loop_var, body=outer.body.stmts[1]) if n is inner else None
    )
    with pytest.raises(tir.WellFormedError) as error:
        verify(func.with_body(twice))
    assert str(error.value).count("already defined") == 1 and "not defined" not in str(error.value)


@pytest.mark.parametrize("size", [30, 32])
def test_the_divisors_of_nested_quotients_multiply(size):
    split = IndexMap.from_func(lambda i: (i // 4 % 8, i % 4))
    inverse, padding = split.non_surjective_inverse([size])
    where = {
        4 * a + b
        for a in range(8)
        for b in range(4)
        if tir.arith.Analyzer().can_prove(
            tir.visit.substitute(padding, dict(zip(inverse.initial_indices, (tir.const(a), tir.const(b)))))
        )
    }
    assert where == set(range(size, 32))


A, B = Var("a"), Var("b")


@pytest.mark.parametrize(
    ("s", "t", "same"),
    [
        (((A, 0), (A, 0)), ((A, 1), (A, 1)), True),
        (((A, 0), (A, 1)), ((A, 1), (A, 0)), False),  # the other first
        (((A, 0), (B, 0)), ((A, 1), (B, 1)), False),  # below another loop
        (((A, 0), (A, A)), ((A, 1), (A, 1)), False),  # no order after: one is a loop where the other is a statement
        (((A, A), (A, 0)), ((A, 1), (A, 1)), False),
        (((A, 0), (0,)), ((A, 1), (1,)), False),  # one loop less in common
    ],
)
def test_statements_keep_their_order_only_by_the_same_loops(s, t, same):
    assert same_order(*(tuple([stamp] for stamp in stamps) for stamps in (s, t))) is same


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(f"{sign}int{bits}", (1 << (bits - 1)) - 3) for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + [("float32", 0.5), ("float64", 0.1), ("bool", True), ("handle", 1 << 60), ("float16", 0.5)],
)
def test_arguments_of_kernels_have_the_bytes_of_their_type(dtype, value):
    numpy_type = "uint64" if dtype == "handle" else dtype
    assert bytes(pack(value, tir.DType(dtype))) == np.array(value, numpy_type).tobytes()


@pytest.fixture
def change():
    """A step ``sch.change(block)`` that puts what a function makes of a loop in its place, if that means the same."""
    functions: list[Callable[[For], Stmt]] = []

    def check(state: State, block: BlockRef):
        """Change the outermost loop above a block."""
        old = block.loops()[0].node
        new = functions[-1](old)
        require_same_meaning(state, state.replace(old, new))
        return old, new

    @primitive(check=check, name="change")
    def apply(state, plan):
        return state.replace(*plan)

    yield functions
    del PRIMITIVES["change"]


def wrapped(loop: For) -> For:
    return For(Var("again"), IntImm(0), IntImm(2), "serial", loop)


@pytest.mark.parametrize(
    ("value", "legal"), [("A[vi]", True), ("A[vi] + P[vi]", False), ("P[vi] + T.float32(1)", False)]
)
def test_what_runs_again_may_not_read_what_it_wrote(change, value, legal):
    sch = schedule(f"""
@T.prim_func
def f(A: T.Buffer((4,), "float32"), P: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("P"):
            vi = T.axis.spatial(4, i)
            P[vi] = {value}
""")
    change.append(wrapped)
    if legal:
        sch.change("P")
    else:
        refused(lambda: sch.change("P"), "read")


@pytest.mark.parametrize("changed", [True, False])
def test_conditions_that_call_functions_of_other_names_differ(change, changed):
    sch = schedule("""
@T.prim_func
def f(A: T.Buffer((4,), "float32"), P: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("P"):
            vi = T.axis.spatial(4, i)
            T.where(T.call_pure_extern("bool", "is_one", i))
            P[vi] = A[vi]
""")

    def other(loop):
        new = StringImm("is_other" if changed else "is_one")
        return refresh(rewrite(loop, lambda n: new if isinstance(n, StringImm) and n.value == "is_one" else None))

    change.append(other)
    if changed:
        refused(lambda: sch.change("P"), "P")
    else:
        sch.change("P")


def test_one_of_two_buffers_of_a_block_becomes_smaller():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("both"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            C = T.alloc_buffer((16,))
            D = T.alloc_buffer((2,))
            with T.block("C"):
                T.reads(A[vi])
                T.writes(C[vi], D[0:2])
                C[vi] = A[vi]
                D[0] = C[vi]
                D[1] = C[vi]
            with T.block("B"):
                T.reads(C[vi], D[0:2])
                T.writes(B[vi])
                B[vi] = C[vi] + D[0] + D[1]
""")
    made = tir.lower(func, upto="compact_buffer_allocation")["main"]
    verify(made)
    blocks = [n for n in walk(made.body) if isinstance(n, Block) and n.name == "both"]
    assert [[int(size) for size in buffer.shape] for buffer in blocks[0].alloc_buffers] == [[1], [2]]
