"""Integer reasoning against evaluation at every point."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.set_points import points as points_of
from tir.arith import Analyzer, regions, simplify, simplify_stmt
from tir.arith.linear import same
from tir.arith.pointwise import compile_expr
from tir.arith.regions import intersect, relax, union
from tir.arith.swizzle import unswizzled
from tir.buffer import Range, decl_buffer
from tir.dtype import INT32, DType
from tir.equal import structural_equal
from tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
    as_expr,
    cast,
    const,
)
from tir.op import call
from tir.stmt import BufferStore, For, IfThenElse, SeqStmt

BOUNDED = settings(derandomize=True, max_examples=200)
I, J, K, N = (Var(name) for name in "ijkn")
VARS = (I, J, K)


def rng(low: Any, extent: Any) -> Range:
    return Range(as_expr(low), as_expr(extent))


def random_expr(r: Random, size: int) -> Expr:
    """A random integer expression with about ``size`` leaves."""
    if size <= 1:
        return IntImm(r.randint(-9, 9)) if r.random() < 0.25 else r.choice(VARS)
    half = r.randint(1, size - 1)
    what = r.random()
    if what < 0.4:
        kind = r.choice([Add, Add, Sub, Min, Max])
        return kind(random_expr(r, half), random_expr(r, size - half))
    if what < 0.75:
        kind = r.choice([FloorDiv, FloorMod, FloorDiv, FloorMod, Div, Mod])
        return kind(random_expr(r, size - 1), IntImm(r.choice([1, 2, 3, 4, 6, 8, 12, 16])))
    if what < 0.88:
        return Mul(random_expr(r, size - 1), IntImm(r.choice([-4, -1, 2, 3, 4, 8])))
    if what < 0.9:
        return Mul(random_expr(r, half), random_expr(r, size - half))
    if what < 0.94:
        op = r.choice(["bitwise_xor", "bitwise_xor", "bitwise_and", "bitwise_or"])
        return Call(op, (random_expr(r, half), random_expr(r, size - half)), INT32)
    condition = random_condition(r, 2)
    sides = random_expr(r, half), random_expr(r, size - half)
    return Select(condition, *sides) if r.random() < 0.5 else Call("if_then_else", (condition, *sides), INT32)


def random_condition(r: Random, size: int) -> Expr:
    what = r.random()
    if size > 1 and what < 0.4:
        return r.choice([And, Or])(random_condition(r, size // 2), random_condition(r, size - size // 2))
    if what < 0.5:
        return Not(random_condition(r, size))
    return r.choice([EQ, NE, LT, LE, GT, GE])(random_expr(r, r.randint(1, 4)), random_expr(r, r.randint(1, 3)))


def int_exprs() -> st.SearchStrategy:
    return st.integers(0, 2**32).map(lambda seed: random_expr(Random(seed), 1 + seed % 8))


def conditions() -> st.SearchStrategy:
    return st.integers(0, 2**32).map(lambda seed: random_condition(Random(seed), 1 + seed % 3))


def domains() -> st.SearchStrategy:
    return st.tuples(*(st.tuples(st.integers(-3, 3), st.sampled_from([1, 2, 3, 4, 8])) for _ in VARS))


def points(dom):
    return itertools.product(*(range(lo, lo + n) for lo, n in dom))


def bind(dom) -> Analyzer:
    return Analyzer({v: rng(lo, n) for v, (lo, n) in zip(VARS, dom)})


@BOUNDED
@given(int_exprs(), domains())
def test_simplify_keeps_the_value_at_every_point(e, dom):
    ctx = bind(dom)
    simple = ctx.simplify(e)
    before, after = compile_expr(e, VARS), compile_expr(simple, VARS)
    for p in points(dom):
        assert before(*p) == after(*p), (p, e, simple)
    lo, hi = ctx.bound(e)
    coeff, base = ctx.modular(e)
    for p in points(dom):
        value = before(*p)
        assert (lo is None or lo <= value) and (hi is None or value <= hi)
        assert value == base if coeff == 0 else (value - base) % coeff == 0


@BOUNDED
@given(int_exprs(), domains())
def test_simplify_is_idempotent(e, dom):
    ctx = bind(dom)
    once = ctx.simplify(e)
    assert bind(dom).simplify(once) is once, (e, once)


@BOUNDED
@given(conditions(), conditions(), domains())
def test_conditions_hold_where_proved(condition, given_, dom):
    ctx = bind(dom)
    simple = compile_expr(ctx.simplify(condition), VARS)
    truth, premise = compile_expr(condition, VARS), compile_expr(given_, VARS)
    for p in points(dom):
        assert bool(truth(*p)) == bool(simple(*p)), (p, condition)
    with ctx.constraint(given_):
        proved = ctx.can_prove(condition)
        under = compile_expr(ctx.simplify(condition), VARS)
    for p in points(dom):
        if premise(*p):
            assert not proved or truth(*p), (p, given_, condition)
            assert bool(under(*p)) == bool(truth(*p)), (p, given_, condition)


@pytest.mark.parametrize("kind", [LT, LE, GT, GE, EQ, NE], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("shift", range(-3, 4))
def test_comparisons_of_sizes_are_decided_where_all_sizes_agree(kind, shift):
    """Not one value earlier or later: of sizes that differ by at least 1, of one that is at least 2, of a loop over one."""
    n, m, i = Var("n"), Var("m"), Var("i")
    larger, positive, looping = Analyzer(), Analyzer(), Analyzer({i: Range(IntImm(0), n)})
    larger.assume(GT(n, m))
    positive.assume(GE(n, const(2)))
    inside = And(GE(i, const(0)), LT(i, n))
    for ctx, premise, left, right in (
        (larger, GT(n, m), n + shift, m),
        (larger, GT(n, m), m, n + shift),
        (positive, GE(n, const(2)), n, const(shift)),
        (looping, inside, i + shift, n),
        (looping, inside, n, i + shift),
    ):
        known, holds = compile_expr(premise, (n, m, i)), compile_expr(kind(left, right), (n, m, i))
        values = {bool(holds(*p)) for p in itertools.product(range(-7, 8), repeat=3) if known(*p)}
        decided = ctx.simplify(kind(left, right))
        assert (decided.value if isinstance(decided, IntImm) else None) == (values.pop() if len(values) == 1 else None)


@pytest.mark.parametrize(("divisor", "rest"), [(m, r) for m in (2, 3, 4, 12) for r in range(min(m, 4))])
def test_a_known_remainder_decides_those_of_its_divisors(divisor, rest):
    for kind in (FloorMod, Mod):
        ctx = Analyzer()
        ctx.assume(EQ(kind(I, const(divisor)), const(rest)))
        for part in (p for p in (2, 3, 4, 6, 12) if divisor % p == 0 and (kind is FloorMod or rest == 0)):
            for shift in range(-2, 3):
                found = ctx.simplify(FloorMod(I * 5 + shift, const(part)))
                assert isinstance(found, IntImm) and found.value == (rest * 5 + shift) % part


@BOUNDED
@given(int_exprs(), int_exprs(), st.integers(1, 6), st.integers(1, 6))
def test_proofs_with_symbolic_extents(a, b, size, inner):
    """i in [0, n), j in [0, i + 1), k in [0, inner)"""
    ctx = Analyzer({I: rng(0, N), J: Range(IntImm(0), I + 1), K: rng(0, inner)})
    names = (I, J, K, N)
    e = a + N * 2
    f, simple = compile_expr(LE(b, e), names), compile_expr(ctx.simplify(LE(b, e)), names)
    value, shorter = compile_expr(e // 4, names), compile_expr(ctx.simplify(e // 4), names)
    proved = ctx.can_prove(LE(b, e))
    for i in range(size):
        for j in range(i + 1):
            for k in range(inner):
                p = (i, j, k, size)
                assert bool(f(*p)) == bool(simple(*p))
                assert value(*p) == shorter(*p)
                assert not proved or f(*p)


@BOUNDED
@given(int_exprs(), domains(), st.sets(st.sampled_from(VARS), min_size=1), st.integers(1, 3))
def test_relax_is_a_hull(e, dom, loops, extent):
    ranges = {v: rng(lo, n) for v, (lo, n) in zip(VARS, dom) if v in loops}
    outer = Analyzer({v: rng(lo, n) for v, (lo, n) in zip(VARS, dom) if v not in loops})
    box = relax([rng(e, extent)], ranges, analyzer=outer)
    if box is None:
        return
    value = compile_expr(e, VARS)
    low, size = compile_expr(box[0].min, VARS), compile_expr(box[0].extent, VARS)
    for p in points(dom):
        assert low(*p) <= value(*p) and value(*p) + extent <= low(*p) + size(*p), (p, e)
    if len(loops) == 3 and isinstance(box[0].extent, IntImm) and not _has(e, (Mul, Select, Call, Div, Mod)):
        seen = [value(*p) for p in points(dom)]
        assert (low(0, 0, 0), size(0, 0, 0)) == (min(seen), max(seen) - min(seen) + extent), e


@BOUNDED
@given(int_exprs(), domains(), st.sets(st.sampled_from(VARS), min_size=1), st.integers(1, 3))
def test_the_hull_of_a_sum_is_that_of_the_analyzer(e, dom, loops, extent):
    ranges = {v: rng(lo, n) for v, (lo, n) in zip(VARS, dom) if v in loops}
    quick, proved = relax([rng(e, extent)], ranges), relax([rng(e, extent)], ranges, analyzer=Analyzer())
    assert structural_equal(quick, proved), (quick, proved)


@BOUNDED
@given(
    st.lists(st.tuples(int_exprs(), st.integers(1, 4)), min_size=2, max_size=3),
    st.lists(st.integers(-9, 9), min_size=3),
)
def test_unions_and_intersections_contain_what_they_must(boxes, shifts):
    boxes = [*boxes, *((boxes[0][0] + shift, size) for shift, (_, size) in zip(shifts, boxes))]
    hulls = [(kind, *kind([[rng(e, n)] for e, n in boxes])) for kind in (union, intersect)]
    for kind, box in hulls:
        low, size = compile_expr(box.min, VARS), compile_expr(box.extent, VARS)
        ends = [(compile_expr(e, VARS), n) for e, n in boxes]
        for p in ((0, 0, 0), (1, 2, 3), (7, 0, 5), (3, 9, 2)):
            first, last = [f(*p) for f, _ in ends], [f(*p) + n for f, n in ends]
            if kind is union:
                assert (low(*p), low(*p) + size(*p)) == (min(first), max(last))
            elif min(last) > max(first):
                assert (low(*p), low(*p) + size(*p)) == (max(first), min(last))


def _has(e, kinds) -> bool:
    from tir.visit import walk

    return any(isinstance(n, kinds) for n in walk(e))


DOM = {I: rng(0, 16), J: rng(0, 4), K: rng(0, N)}
# expression -> what a person would write
READABLE = [
    ((I * 4 + J) // 4, I),
    ((I * 4 + J) % 4, J),
    ((I * 4 + J) // 8, I // 2),
    ((I * 4 + J) % 8, I % 2 * 4 + J),
    (I // 4 * 4 + I % 4, I),
    (N // 32 * 32 + N % 32 // 8 * 8 + N % 8, N),
    ((N - 1) // 32 + 1, (N + 31) // 32),
    (N // 4 // 8, N // 32),
    (N // 4 % 8, N % 32 // 4),
    (N % 32 % 8, N % 8),
    (N - N // 4 * 4, N % 4),
    ((K * N + K) // N, K),
    ((I * N + K) % N, K),
    (I // N * N + I % N, I),
    (N + 4 - N, IntImm(4)),
    ((N + 1) * K - N * K, K),
    (Min(I, IntImm(20)), I),
    (Max(Min(I, IntImm(15)), IntImm(0)), I),
    (LT(I * 4 + J, IntImm(32)), LT(I, IntImm(8))),
    (LT(K, N), TRUE),
    (LT(N * 8 + J * 2 + I // 8, IntImm(32)), LT(N, IntImm(4))),
    (IntImm(3) + I, I + 3),
    (IntImm(32) * N + J, N * 32 + J),
    (cast("int64", I) * 2 + cast("int64", I), cast("int64", I) * 3),
    (And(LT(I, IntImm(8)), LT(I, IntImm(9))), LT(I, IntImm(8))),
    (Not(LT(N, IntImm(8))), GE(N, IntImm(8))),
]


@pytest.mark.parametrize("number", range(len(READABLE)))
def test_readable(number):
    e, want = READABLE[number]
    assert same(simplify(e, DOM), want) or str(simplify(e, DOM)) == str(want), simplify(e, DOM)


def test_canonical_expressions_are_left_alone():
    for e in (I * 32 + J, N // 4, N % 4 + 1, LT(N, I), Min(I, N), N - I, Select(LT(I, N), I, N), N * I + 1):
        assert simplify(e, DOM) is e


def test_proofs():
    ctx = Analyzer(DOM)
    assert ctx.can_prove((N + 31) // 32 * 32 >= N)
    assert ctx.can_prove(K * N + K < N * N)
    assert ctx.can_prove(N // 4 * 4 <= N)
    assert ctx.can_prove_equal((I + J) // 4, (J + I) // 4)
    assert not ctx.can_prove(N > 1)
    with ctx.constraint(EQ(N % 4, IntImm(0))):
        assert ctx.can_prove_equal(N // 4 * 4, N)
        assert ctx.modular(N * 3 + 1) == (12, 1)
    with ctx.constraint(LT(I * 4 + N, IntImm(10))):
        assert ctx.bound(I * 4 + N + 1)[1] == 10


def test_remainders_add_up():
    """3 in 4 and another 3 in 4 are 2 in 4; 3 times 3 is 1."""
    ctx, a, b = Analyzer(DOM), Var("a"), Var("b")
    ctx.bind(a, I * 4 + 3)
    ctx.bind(b, J * 4 + 3)
    assert ctx.modular(a + b) == (4, 2) and ctx.modular(a - b) == (4, 0)
    assert ctx.modular(a * b) == (4, 1) and ctx.modular(a * b * 2 + 1) == (8, 3)
    assert ctx.can_prove_equal((a + b) % 4, IntImm(2)) and not ctx.can_prove_equal((a + b) % 8, IntImm(2))


def test_what_a_negation_is_about_is_simplified():
    """A float comparison has no opposite: with nan, both sides are false."""
    x = Var("x", "float32")
    for compare in (LT, LE, GT, GE):
        plain = Not(compare(x, I.astype("float32")))
        assert structural_equal(simplify(Not(compare(x, (I + N - N).astype("float32")))), plain)
        assert simplify(plain) is plain


def test_floats_and_wrapping_types_are_not_rearranged():
    x, u = Var("x", "float32"), Var("u", "uint8")
    for e in (x * 1.0, x + 0.0, (x + 1.0) - 1.0, Sub(x, x), Mul(x, FloatImm(0.0, x.dtype))):
        assert simplify(e) is e
    e = Sub(Add(u, IntImm(200, u.dtype)), IntImm(200, u.dtype))
    assert simplify(e) is e


def test_constants_that_do_not_fit_are_not_made():
    big = IntImm(2**30)
    e = Mul(Mul(N, big), IntImm(8))
    assert simplify(e) is e
    small = N // (1 << 20)
    for part in (e // 3, e % 3, e // K, e % K, (e + K) // 9, small // (1 << 20), small % (1 << 20)):
        assert simplify(part) is part
    n64 = Var("n", "int64")
    assert simplify(n64 * 2**30 * 8 - n64 * (2**33 - 1)) is n64


def test_a_select_side_is_not_simplified_under_its_condition():
    """Both sides run: A[i % 4] must not become A[i] because i < 4 is asked."""
    a = decl_buffer((4,), name="A")
    e = Select(LT(N, IntImm(4)), BufferLoad(a, (N % 4,)), FloatImm(0.0, a.dtype))
    with Analyzer().constraint(N >= 0) as ctx:
        assert ctx.simplify(e) is e
        lazy = Call("if_then_else", (e.condition, e.true_value, e.false_value), a.dtype)
        assert ctx.simplify(lazy).args[1].indices[0] is N


def test_simplify_stmt():
    a = decl_buffer((64,), "int32", name="A")
    store = BufferStore(a, I * 4 + J, ((I * 4 + J) // 4 * 4 + J,))
    guarded = IfThenElse(LT(I * 4 + J, IntImm(64)), store)
    never = IfThenElse(LT(I, IntImm(0)), store)
    empty = For(K, IntImm(0), IntImm(0), "serial", store)
    inner = For(J, IntImm(0), IntImm(4), "serial", SeqStmt((guarded, never, empty)))
    loop = For(I, IntImm(0), IntImm(16), "serial", inner)
    simple = simplify_stmt(loop)
    assert isinstance(simple.body.body, BufferStore)
    assert same(simple.body.body.indices[0], I * 4 + J)
    assert simplify_stmt(simple) is simple


def test_union_and_intersection():
    (u,) = union([(rng(I * 4, 4),), (rng(I * 4 + 2, 4),)])
    assert same(u.min, I * 4) and int(u.extent) == 6
    (c,) = intersect([(rng(0, 8),), (rng(5, 9),)])
    assert (int(c.min), int(c.extent)) == (5, 3)
    (none,) = intersect([(rng(0, 2),), (rng(5, 9),)])
    assert int(none.extent) == 0


@BOUNDED
@given(domains(), st.lists(st.sampled_from([-8, -2, -1, 0, 1, 2, 3, 8]), min_size=3, max_size=3), st.integers(1, 9))
def test_hulls_of_digits_are_exact(dom, steps, divisor):
    total = I * steps[0] + J * steps[1] + K * steps[2] - 3
    for e in (total // divisor * -2 + 1, total % divisor * 3, (I * 4 + J) // 3 * 2 - (K + 5) % divisor * 3):
        (box,) = relax([rng(e, 1)], {v: rng(lo, n) for v, (lo, n) in zip(VARS, dom)})
        seen = [*itertools.starmap(compile_expr(e, VARS), points(dom))]
        assert (int(box.min), int(box.extent)) == (min(seen), max(seen) - min(seen) + 1)


def test_relax_clips_by_the_predicate():
    (box,) = relax([rng(I * 32 + J, 1)], {I: rng(0, 4), J: rng(0, 32)}, LT(I * 32 + J, IntImm(100)))
    assert (int(box.min), int(box.extent)) == (0, 100)
    (row,) = relax([rng(K, 1)], {K: rng(0, N)})
    assert row.extent is N


@pytest.mark.parametrize(
    "extent",
    [
        Min(N, K),
        Max(Min(N, as_expr(3)) - Max(K, as_expr(0)), as_expr(0)),
        Max(N, K) - 2,
        5 - Max(N - K, as_expr(1)),
        Max(N, as_expr(0)) + Min(K, N) - Min(N, as_expr(1)),
    ],
)
def test_ranges_of_sets_take_least_and_greatest_apart(extent):
    """Exactly 1 <= i < 1 + extent, also for loops that run no times."""
    from tir.poly import Formula, Names

    formula = Formula(Names())
    for v in (N, K):
        formula.within(v, as_expr(-2), as_expr(7))
    formula.within(I, as_expr(1), extent)
    points = points_of(formula.set([formula.var(v) for v in (N, K, I)]))
    count = compile_expr(extent, (N, K))
    want = {(n, k, i) for n in range(-2, 5) for k in range(-2, 5) for i in range(1, 1 + count(n, k))}
    assert want and len(points) == len(want) and set(points) == want


@BOUNDED
@given(st.integers(0, 2**32), domains())
def test_swizzles_keep_their_values(seed, dom):
    """Simplified, as exact sets, and by their bounds: sums of powers of two, xored."""
    from tir.poly import Formula, Names, NotAffine

    r = Random(seed)

    def total() -> Expr:
        low = FloorMod(r.choice(VARS), as_expr(r.choice([2, 4, 8])))
        return r.choice([low, r.choice(VARS) * r.choice([1, 2, 4, 8]) + low, low * r.choice([2, 4, 8]), r.choice(VARS)])

    e = Call(r.choice(["bitwise_xor", "bitwise_xor", "bitwise_and", "bitwise_or"]), (total(), total()), INT32)
    ctx = bind(dom)
    simple = ctx.simplify(e)
    before, after = compile_expr(e, VARS), compile_expr(simple, VARS)
    values = {p: before(*p) for p in points(dom)}
    assert {p: after(*p) for p in points(dom)} == values, (e, simple)
    assert bind(dom).simplify(simple) is simple
    lo, hi = ctx.bound(e)
    assert all((lo is None or lo <= v) and (hi is None or v <= hi) for v in values.values())
    formula = Formula(Names())
    for v, (first, n) in zip(VARS, dom):
        formula.within(v, as_expr(first), as_expr(n))
    name = formula.helper()
    try:
        formula.equal(name, e)
    except NotAffine:
        return  # neither side is known to be small
    made = formula.map([formula.var(v) for v in VARS], [name])
    assert set(points_of(made)) == {(*p, v) for p, v in values.items()}


def lane(e: Expr, k: int) -> Expr:
    """Lane ``k`` of a vector as a scalar."""
    if isinstance(e, Ramp):
        return e.base + e.stride * k
    return e.value if isinstance(e, Broadcast) else type(e)(lane(e.a, k), lane(e.b, k))


VECTORS = [
    Ramp(I, const(1), 4),
    Ramp(J * 2, const(1), 4),
    Ramp(I + 3, const(-1), 4),
    Ramp(I, J, 4),
    Ramp(const(5), const(2), 4),
    Broadcast(J + 2, 4),
    Broadcast(const(3), 4),
    Broadcast(const(0), 4),
]


@pytest.mark.parametrize("kind", [Add, Sub, Mul], ids=lambda k: k.__name__)
@pytest.mark.parametrize("a", VECTORS, ids=repr)
@pytest.mark.parametrize("b", VECTORS, ids=repr)
def test_arithmetic_of_vectors_keeps_every_lane(kind, a, b):
    made = simplify(kind(a, b))
    if kind is not Mul or isinstance(a, Broadcast) or isinstance(b, Broadcast):
        assert isinstance(made, (Ramp, Broadcast))
    for k in range(4):
        before, after = compile_expr(lane(kind(a, b), k), VARS), compile_expr(lane(made, k), VARS)
        for point in itertools.product(range(-2, 3), repeat=len(VARS)):
            assert before(*point) == after(*point), (k, point, made)


def test_a_vector_of_equal_lanes_is_a_broadcast():
    assert isinstance(simplify(Ramp(I, const(2), 4) - Ramp(J, const(2), 4)), Broadcast)
    assert isinstance(simplify(Ramp(I, const(1), 4) * Broadcast(const(0), 4)), Broadcast)
    assert isinstance(simplify(Ramp(I, const(1), 4) * Broadcast(const(1), 4)), Ramp)


@pytest.mark.parametrize("first, known", [(144, True), (150, False), (145, None)])
def test_a_comparison_that_all_lanes_agree_on_is_decided(first, known):
    made = simplify(Ramp(const(first), const(1), 6) < Broadcast(const(150), 6))
    assert known is None if isinstance(made, LT) else bool(made.value.value) is known


def test_no_unsigned_number_is_below_zero():
    assert not simplify(Var("x", "uint8") < const(0, "uint8")).value


def test_a_choice_that_is_the_same_in_all_lanes_is_made():
    a, b = Ramp(I, const(1), 4), Ramp(J, const(1), 4)
    for n, chosen in enumerate((b, a)):
        assert simplify(Select(Broadcast(const(n, "bool"), 4), a, b)) is chosen


def test_bounds_of_truncating_operators():
    i, j = Var("i"), Var("j")
    ctx = Analyzer({i: Range(IntImm(-5), IntImm(6)), j: Range(IntImm(-5), IntImm(10))})
    three = IntImm(3)
    assert ctx.bound(Mod(i, three)) == (-2, 0) and ctx.bound(Mod(j, three)) == (-2, 2)
    assert Analyzer({i: Range(IntImm(-5), IntImm(3))}).bound(Mod(i, three)) == (-2, 0)
    assert ctx.bound(Div(i, three)) == (-1, 0) and ctx.bound(Div(j, three)) == (-1, 1)


def test_truncating_operators_of_what_is_not_negative():
    i, n = Var("i"), Var("n")
    ctx = Analyzer({i: Range(IntImm(0), IntImm(100))})
    ctx.assume(n >= 1)
    assert repr(ctx.simplify(Mod(i * n, n))) == "0"
    assert repr(ctx.simplify(Div(i * n, n))) == "i"
    assert isinstance(Analyzer({i: Range(IntImm(-9), IntImm(100))}).simplify(Mod(i, IntImm(4))), Mod)


def test_relax_a_multiple_of_a_size():
    ctx = Analyzer()
    region, loops = [Range(K * N, N)], {K: rng(0, 4)}
    assert relax(region, loops, analyzer=ctx) is None  # of either sign
    ctx.assume(N >= 0)
    (box,) = relax(region, loops, analyzer=ctx)
    assert (repr(box.min), repr(ctx.simplify(box.extent - N * 4))) == ("0", "0")


def test_bounds_of_a_sum_that_just_fits():
    narrow = Var("narrow", DType("uint8"))
    ctx = Analyzer({narrow: Range(const(3, "uint8"), const(250, "uint8"))})
    assert ctx.bound(narrow + const(3, "uint8")) == (6, 255)
    assert ctx.bound(narrow + const(4, "uint8")) == (0, 255)  # it wraps


def test_quotients_of_a_remainder():
    x = Var("x")
    assert repr(simplify((x % 64 // 4) // 8)) == "x % 64 // 32"
    assert repr(simplify((x % 64 // 4 + 3) // 8)) == "(x % 64 + 12) // 32"


def test_what_is_beside_a_swizzled_digit_stays_below_it():
    i, j, k = Var("i"), Var("j"), Var("k")
    index = call("bitwise_xor", j, i % 8) * 2 + k
    for beside, found in ((2, True), (4, False)):
        ctx = Analyzer({i: rng(0, 64), j: rng(0, 32), k: rng(0, beside)})
        assert (unswizzled([i, index], ctx) is not None) == found


@pytest.mark.parametrize("name", ["floor_div", "floor_mod", "trunc_division", "trunc_modulo"])
def test_bounds_of_divisions_by_any_interval(name):
    """An interval may be empty, where conditions contradict each other; then every bound is right."""
    from tir.arith import bounds
    from tir.expr import trunc_div

    of_values = {
        "floor_div": lambda x, y: x // y,
        "floor_mod": lambda x, y: x % y,
        "trunc_division": trunc_div,
        "trunc_modulo": lambda x, y: x - y * trunc_div(x, y),
    }[name]
    ends = [None, *range(-4, 5)]
    intervals = list(itertools.product(ends, ends))
    for a, b in itertools.product(intervals[::3], intervals):
        low, high = getattr(bounds, name)(a, b)
        for x, y in itertools.product(_some(a), _some(b)):
            if y:
                value = of_values(x, y)
                assert (low is None or low <= value) and (high is None or value <= high), (a, b, x, y)


def _some(interval):
    """Values of an interval, up to 5 where it has no end."""
    low, high = interval
    return range(-5 if low is None else low, 6 if high is None else high + 1)


@pytest.mark.parametrize("extent", [0, 1, 3])
def test_expressions_of_a_loop_without_iterations_are_simplified(extent):
    """The values of an iterator of extent 0 are from 0 to -1: no bound of theirs is a bound of a value."""
    i = Var("i")
    calls = [call(op, const(1), i) for op in ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor")]
    for e in (*calls, 8 // (i + 1), 8 % (i + 1), i // 2, i % 2, Min(i, const(3)), call("shift_left", const(1), i * 2)):
        simplified = simplify(e + 1 < 5, {i: Range(const(0), const(extent))})
        for value in range(extent):
            point = {i: const(value)}
            assert repr(simplify(simplified, point)) == repr(simplify(e + 1 < 5, point))


@pytest.mark.parametrize(
    ("value", "known"),
    [("x % 4", 3), ("(x + 1) % 8", 4), ("(x * 2 + 1) % 16", 7), ("x % 16", None), ("(x + y) % 8", None)],
)
def test_remainders_follow_from_a_known_one(value, known):
    x, y, analyzer = Var("x"), Var("y"), Analyzer()
    analyzer.assume(EQ(x % 8, const(3)))
    found = analyzer.simplify(eval(value, {"x": x, "y": y}))
    assert getattr(found, "value", None) == known


@pytest.mark.parametrize(
    ("e", "simple"),
    [
        (FloorDiv(const(0), const(-5)), "0"),
        (FloorMod(const(0), const(-5)), "0"),
        (FloorDiv(const(-5), const(-5)), "1"),
        (FloorDiv(const(0), const(0)), "T.FloorDiv(0, 0)"),
        (FloorMod(const(0), const(0)), "T.FloorMod(0, 0)"),
        (FloorDiv(Var("x"), const(0)), "T.FloorDiv(x, 0)"),
        (FloorDiv(Var("x") * -6, const(-3)), "x * -6 // -3"),
    ],
    ids=repr,
)
def test_division_by_what_is_not_positive(e, simple):
    assert repr(simplify(e)) == simple


@pytest.mark.parametrize(
    ("index", "extent", "box"),
    [
        (Ramp(I * 8, as_expr(2), 4), 1, (0, 31)),
        (Ramp(I * 8 + 9, as_expr(-3), 4), 1, (0, 34)),
        (Ramp(I, as_expr(0), 4), 1, (0, 4)),
        (Ramp(N + I, as_expr(1), 4), 1, (N, 7)),
        (Ramp(I * N, as_expr(1), 4), 1, None),
        (Ramp(I, N, 4), 1, None),
        (Broadcast(I, 4), 1, None),
        (cast("float32", I), 1, None),
        (N, K, (N, K)),
        (I, J, (0, 6)),
        (I, N, (0, N + 3)),
        (I * N, N, None),
        (I, I + 1, (0, 7)),
    ],
)
def test_the_hull_of_an_index_in_four_iterations(index, extent, box):
    found = relax([Range(index, as_expr(extent))], {I: rng(0, 4), J: rng(0, 4)})
    if box is None:
        assert found is None
    else:
        assert found is not None
        for e, wanted in zip((found[0].min, found[0].extent), box):
            assert Analyzer().can_prove_equal(e, as_expr(wanted)), (found, box)


@pytest.mark.parametrize("e", [I, I + 3, I * 2 - J, I // 3])
def test_what_is_exclusive_with_itself_is_zero(e):
    assert repr(simplify(call("bitwise_xor", e, e))) == "0"


@pytest.mark.parametrize("tell", ["bind", "assume", "constraint", "scope"])
def test_what_is_learned_changes_what_was_answered_before(tell: str):
    analyzer = Analyzer({I: Range(as_expr(0), as_expr(100))})
    assert analyzer.bound(I // 2) == (0, 49) and not is_zero(analyzer.simplify(I // 8))
    if tell == "bind":
        analyzer.bind(I, Range(as_expr(0), as_expr(8)))
        learned = analyzer.bound(I // 2), analyzer.simplify(I // 8)
    elif tell == "assume":
        analyzer.assume(I < 8)
        learned = analyzer.bound(I // 2), analyzer.simplify(I // 8)
    elif tell == "constraint":
        with analyzer.constraint(I < 8):
            learned = analyzer.bound(I // 2), analyzer.simplify(I // 8)
    else:
        with analyzer.scope():
            analyzer.bind(I, Range(as_expr(0), as_expr(8)))
            learned = analyzer.bound(I // 2), analyzer.simplify(I // 8)
    assert learned[0] == (0, 3) and is_zero(learned[1])
    if tell in ("constraint", "scope"):
        assert analyzer.bound(I // 2) == (0, 49) and not is_zero(analyzer.simplify(I // 8))


def is_zero(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.value == 0


def test_a_likely_value_has_the_bounds_of_the_value():
    analyzer = Analyzer({I: Range(as_expr(0), as_expr(4))})
    assert analyzer.bound(call("likely", I * 2)) == (0, 6)


def test_a_choice_between_equal_vectors_is_no_choice():
    for vector in (Broadcast(I + 1, 4), Ramp(I, as_expr(2), 4)):
        again = vector.replace()
        assert again is not vector
        chosen = simplify(call("if_then_else", I < J, vector, again))
        assert not isinstance(chosen, Call) and same(chosen, simplify(vector))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_of_constants_are_computed_where_numpy_rounds_as_we_do(dtype: str):
    assert isinstance(simplify(call("exp", const(1.0, "float32"))), FloatImm)
    for left in (call("exp", const(1.0, dtype)), call("isnan", const(1.0, "float32"))):
        assert isinstance(simplify(left), Call) and simplify(left).dtype is left.dtype


def test_a_long_chain_of_ranges_is_relaxed_at_once():
    """Both ends of each range name the variable before: every hull is found once."""
    loops = [Var(f"v{n}") for n in range(24)]
    ranges = {loops[0]: rng(0, 4), **{v: Range(before, before + 3) for before, v in itertools.pairwise(loops[:8])}}
    (box,) = relax([rng(loops[7], 1)], ranges)
    assert (int(box.min), int(box.extent)) == (0, 639)
    chain = {loops[0]: rng(0, N), **{v: Range(before, before + 1) for before, v in itertools.pairwise(loops)}}
    asked = []
    relaxer = regions._Relaxer(Analyzer(), chain)
    relaxer._loop = lambda dom, dtype, found=relaxer._loop: (asked.append(dom), found(dom, dtype))[1]
    assert relaxer.range(rng(loops[-1], 1)) is not None and len(asked) == len(loops)


def test_ranges_that_name_each_other_have_no_hull():
    assert relax([rng(I, 1)], {I: Range(IntImm(0), J + 1), J: Range(IntImm(0), I + 1)}) is None
    assert relax([rng(I, 1)], {I: Range(I, as_expr(3))}) is None
