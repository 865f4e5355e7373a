"""What the form of two indices says of a loop's iterations, against every pair of iterations and against exact sets."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tir.analysis.dependence import loops as legality_loops
from tir.analysis.dependence.affine import AffineForms, no_carried_dependence
from tir.analysis.dependence.loops import check_parallel
from tir.analysis.dependence.statements import statements_of
from tir.buffer import decl_buffer
from tir.expr import BufferLoad, IntImm, Var, const
from tir.function import PrimFunc
from tir.node import frozendict
from tir.script import tir as T
from tir.stmt import BufferStore, For, root_block, seq

A = decl_buffer((4096, 4096), name="A")
OUTER, LOOP, X, Y = (Var(n) for n in ("o", "v", "x", "y"))
EXTENTS = {OUTER: 2, LOOP: 3, X: 2, Y: 3}

terms = st.lists(st.tuples(st.sampled_from([OUTER, LOOP, X, Y]), st.integers(-2, 12)), max_size=3)


@st.composite
def indices(draw):
    """An expression over the loops, and what it is for values of them."""
    parts, base = draw(terms), draw(st.integers(0, 3))
    e, by, kind = const(base + 100), draw(st.integers(1, 6)), draw(st.sampled_from(["", "", "//", "%"]))
    for v, c in parts:
        e = e + v * c
    total = lambda at: base + 100 + sum(c * at[v] for v, c in parts)  # noqa: E731
    if kind == "//":
        return e // by, lambda at: total(at) // by
    if kind == "%":
        return e % by, lambda at: total(at) % by
    return e, total


def points(variables):
    return [dict(zip(variables, p)) for p in itertools.product(*(range(EXTENTS[v]) for v in variables))]


@settings(max_examples=300, deadline=None)
@given(st.tuples(indices(), indices()), st.tuples(indices(), indices()))
def test_indices_that_are_apart_never_meet_in_two_iterations(written, read):
    store = BufferStore(A, BufferLoad(A, tuple(e for e, _ in read)) + 1.0, tuple(e for e, _ in written))
    body = store
    for v in (Y, X, LOOP):
        body = For(v, IntImm(0), IntImm(EXTENTS[v]), "serial", body)
    (unit,) = statements_of(body, blocks=False)
    forms = AffineForms(unit)
    write, load = unit.writes()[0], unit.reads()[0]
    for a, b, fa, fb in ((write, write, written, written), (write, load, written, read)):
        if not no_carried_dependence(forms, a, forms, b, LOOP):
            continue
        for fixed, p, q in itertools.product(points([OUTER]), points([LOOP, X, Y]), points([LOOP, X, Y])):
            if p[LOOP] != q[LOOP]:
                here, there = {**fixed, **p}, {**fixed, **q}
                assert [f(here) for _, f in fa] != [f(there) for _, f in fb]


@settings(max_examples=150, deadline=None)
@given(st.tuples(indices(), indices()), st.tuples(indices(), indices()))
def test_a_loop_is_parallel_by_form_only_where_it_is_by_sets(written, read):
    first = BufferStore(A, const(1.0, "float32"), tuple(e for e, _ in written))
    second = BufferStore(A, BufferLoad(A, tuple(e for e, _ in read)) * 2.0, tuple(e for e, _ in written))
    x, y = (For(v, IntImm(0), IntImm(EXTENTS[v]), "serial", s) for v, s in ((X, first), (Y, second)))
    both = [For(v, IntImm(0), IntImm(EXTENTS[v]), "serial", s) for v, s in ((Y, x), (X, y))]
    target = For(LOOP, IntImm(0), IntImm(EXTENTS[LOOP]), "serial", seq(both))
    handle = Var("a", "handle")
    func = PrimFunc(
        (handle,),
        root_block(For(OUTER, IntImm(0), IntImm(EXTENTS[OUTER]), "serial", target), ()),
        buffer_map=frozendict({handle: A}),
    )
    quick = check_parallel(func, target)
    by_form, legality_loops.no_carried_dependence = legality_loops.no_carried_dependence, lambda *_: False
    try:
        exact = check_parallel(func, target)
    finally:
        legality_loops.no_carried_dependence = by_form
    assert (quick is None) == (exact is None)


@T.prim_func
def fused(C: T.Buffer((24, 7), "float32")):
    for f in range(168):
        C[f // 7, f % 7] = 1.0


@T.prim_func
def windows(C: T.Buffer((64,), "float32")):
    for i in range(8):
        for j in range(9):
            C[i * 7 + j] = 1.0


def test_a_fused_loop_is_told_by_its_digits():
    loop = fused.body.block.body if hasattr(fused.body, "block") else fused.body
    (unit,) = statements_of(loop, blocks=False)
    forms = AffineForms(unit)
    assert no_carried_dependence(forms, unit.writes()[0], forms, unit.writes()[0], loop.loop_var)


def test_overlapping_windows_are_not_apart():
    loop = windows.body.block.body if hasattr(windows.body, "block") else windows.body
    (unit,) = statements_of(loop, blocks=False)
    forms = AffineForms(unit)
    assert not no_carried_dependence(forms, unit.writes()[0], forms, unit.writes()[0], loop.loop_var)
