"""Inferred regions of blocks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tir.analysis.block_regions import block_access_region
from tir.analysis.dependence.statements import statements_of
from tir.analysis.reduction_forms import Reduction
from tir.arith.pointwise import compile_expr
from tir.buffer import IterVar, Range, decl_buffer
from tir.expr import TRUE, BufferLoad, IntImm, Select, Var, const
from tir.op import call
from tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For, LetStmt, seq

A, B, C = (decl_buffer((64, 64), name=name) for name in "ABC")
VI, VJ, K = Var("vi"), Var("vj"), Var("k")


def block(body, init=None, alloc=()):
    return Block((), (), (), "b", body, init, alloc)


def text(regions):
    return [(r.buffer.name, [(repr(d.min), repr(d.extent)) for d in r.region]) for r in regions]


def test_points_and_neighbours_unite():
    body = BufferStore(B, BufferLoad(A, (VI, VJ - 1)) + BufferLoad(A, (VI, VJ + 1)), (VI, VJ))
    reads, writes = block_access_region(block(body))
    assert text(reads) == [("A", [("vi", "1"), (repr(VJ - 1), "3")])]
    assert text(writes) == [("B", [("vi", "1"), ("vj", "1")])]


def test_inner_loops_are_relaxed():
    body = For(K, IntImm(0), IntImm(4), "serial", BufferStore(B, BufferLoad(A, (K // 2, VI * 4 + K)), (VI, 63 - K)))
    reads, writes = block_access_region(block(body))
    assert text(reads) == [("A", [("0", "2"), ("vi * 4", "4")])]
    assert text(writes) == [("B", [("vi", "1"), ("60", "4")])]


def test_digits_of_an_index_are_regions_of_their_own():
    at = VI * 16 + K
    body = For(
        K, IntImm(0), IntImm(16), "serial", BufferStore(B, BufferLoad(A, (at % 32, at % 32 // 16)), (at // 32, K))
    )
    reads, writes = block_access_region(block(body))
    assert text(reads) == [("A", [("vi % 2 * 16", "16"), ("vi % 2", "1")])]
    assert text(writes) == [("B", [("vi // 2", "1"), ("0", "16")])]


def test_digits_that_a_loop_crosses_are_whole():
    at = VI * 8 + K
    body = For(K, IntImm(0), IntImm(16), "serial", BufferStore(B, BufferLoad(A, (at % 32, K)), (at // 32, K)))
    reads, writes = block_access_region(block(body))
    assert text(reads) == [("A", [("0", "32"), ("0", "16")])]
    (low, size), _ = text(writes)[0][1]
    assert (low, size) == ("vi // 4", "2")


def test_the_target_of_a_reduction_is_not_read():
    update = BufferStore(C, BufferLoad(C, (VI, VJ)) + BufferLoad(A, (VI, VJ)), (VI, VJ))
    init = BufferStore(C, const(0.0, "float32"), (VI, VJ))
    assert [r.buffer for r in block_access_region(block(update, init))[0]] == [A]
    assert [r.buffer for r in block_access_region(block(update))[0]] == [C, A]


def test_data_decides_an_index():
    where = decl_buffer((64,), "int32", name="where")
    body = BufferStore(B, BufferLoad(A, (BufferLoad(where, (VI,)), VJ)), (VI, VJ))
    reads, _ = block_access_region(block(body))
    assert text(reads) == [("where", [("vi", "1")]), ("A", [("0", "64"), ("vj", "1")])]
    t = Var("t")
    let = LetStmt(t, BufferLoad(where, (VI,)), BufferStore(B, BufferLoad(A, (t, VJ)), (VI, VJ)))
    assert text(block_access_region(block(let))[0]) == text(reads)


def test_own_buffers_are_left_out_and_nested_blocks_count():
    w = Var("w")
    inner = Block(
        (IterVar(Range(IntImm(0), IntImm(16)), w),),
        (A[w, 0:64],),
        (B[w, 0:64],),
        "inner",
        BufferStore(B, BufferLoad(A, (w, IntImm(0))), (w, IntImm(0))),
    )
    body = For(K, IntImm(0), IntImm(4), "serial", BlockRealize((VI * 4 + K,), TRUE, inner))
    reads, writes = block_access_region(block(body))
    assert text(reads) == [("A", [("vi * 4", "4"), ("0", "64")])]
    assert block_access_region(block(body, alloc=(B,)))[1] == ()


def test_pointers_are_opaque():
    from tir.expr import StringImm

    body = Evaluate(
        call("call_extern", StringImm("f"), A.data, call("address_of", B[0, 0], dtype="handle"), dtype="int32")
    )
    reads, writes = block_access_region(block(body), {A.data: A})
    assert {r.buffer for r in reads} == {A, B} == {r.buffer for r in writes}
    assert repr(reads[0].region[0].extent) == "64"


def test_units_and_commuting_updates():
    own, other = BufferLoad(C, (VI, VJ)), BufferLoad(A, (VI, VJ))
    for value, free in (
        (own + other, True),
        (own + other * own, False),
        (own * other, True),
        (own - other, True),
        (other - own, False),
        (own * 0.5 + other, False),
    ):
        assert isinstance(Reduction.of(BufferStore(C, value, (VI, VJ))), Reduction) == free
    one = BufferStore(C, other, (VI, VJ))
    units = statements_of(
        For(VI, IntImm(0), IntImm(8), "serial", seq([one, For(VJ, IntImm(0), IntImm(8), "serial", one)]))
    )
    assert [u.time for u in units] == [(VI, 0), (VI, 1, VJ)]


def test_both_sides_of_a_choice_are_touched():
    for where in (
        call("if_then_else", K < 2, VI + K, VI + 8 - K, dtype="int32"),
        call("if_then_else", K < 2, VI + 8 - K, VI + K, dtype="int32"),
        Select(K < 2, VI + K, VI + 8 - K),
    ):
        body = BufferStore(B, BufferLoad(A, (where, VJ)), (VI, VJ))
        reads, _ = block_access_region(block(For(K, IntImm(0), IntImm(4), "serial", body)))
        assert text(reads) == [("A", [("vi", "9"), ("vj", "1")])]


DIVISORS = st.sampled_from([2, 3, 4, 6, 8, 16, 32])


@st.composite
def digits(draw):
    """An index with divisions of a sum of an iterator and a loop, and its value at a point."""
    outer, inner, start = draw(st.integers(-16, 32)), draw(st.integers(-4, 8)), draw(st.integers(-9, 40))
    index, value = VI * outer + K * inner + start, lambda v, k: v * outer + k * inner + start
    for _ in range(draw(st.integers(1, 3))):
        by, add = draw(DIVISORS), draw(st.integers(0, 3))
        if draw(st.booleans()):
            index, value = index // by + add, lambda v, k, f=value, by=by, add=add: f(v, k) // by + add
        else:
            index, value = index % by + add, lambda v, k, f=value, by=by, add=add: f(v, k) % by + add
    return index, value


@given(digits(), st.integers(1, 20))
@settings(max_examples=200)
def test_regions_of_digits_cover_every_access(drawn, extent):
    index, value = drawn
    body = For(K, IntImm(0), IntImm(extent), "serial", BufferStore(B, const(0.0, "float32"), (index, K)))
    _, (written,) = block_access_region(block(body))
    first = written.region[0]
    low, high = (compile_expr(e, [VI]) for e in (first.min, first.min + first.extent))
    for v in range(-3, 9):
        touched = [value(v, k) for k in range(extent)]
        assert low(v) <= min(touched) and max(touched) < high(v)
