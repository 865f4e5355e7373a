"""Iterator maps against enumeration: what is called bijective is, inverses invert, divisions recombine."""

from __future__ import annotations

import itertools
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir.arith import Analyzer, itermap, simplify
from tir.arith.inverse import inverse_iter_map
from tir.arith.itermap import covered_box, detect_iter_map, subspace_divide
from tir.arith.pointwise import compile_expr
from tir.buffer import Range
from tir.expr import LT, TRUE, Expr, Max, Var, const

BOUNDED = settings(derandomize=True, max_examples=200)
VARS = tuple(Var(name) for name in "ijk")
SEEDS = st.integers(0, 2**32)


def rng(low: int, extent: int) -> Range:
    return Range(const(low), const(extent))


def transformed(r: Random, extents: list[int], steps: int) -> list[tuple[Expr, int]]:
    """Indices made by fusing, splitting and reordering the loops: a bijection by construction."""
    items: list[tuple[Expr, int]] = list(zip(VARS, extents))
    for _ in range(steps):
        at = r.randrange(len(items))
        e, n = items[at]
        divisors = [d for d in range(2, n) if n % d == 0]
        if r.random() < 0.5 and divisors:
            d = r.choice(divisors)
            items[at : at + 1] = [(e // d, n // d), (e % d, d)]
        elif len(items) > 1:
            r.shuffle(items)
            (a, m), (b, n) = items[0], items[1]
            items[:2] = [(a * n + b, m * n)]
    return items


def image(indices, points):
    functions = [compile_expr(e, VARS) for e in indices]
    return [tuple(f(*p) for f in functions) for p in points]


@BOUNDED
@given(SEEDS)
def test_transformed_loops_are_bijective_and_invert(seed):
    r = Random(seed)
    extents = [r.choice([1, 2, 3, 4, 6, 8]) for _ in VARS]
    items = transformed(r, extents, r.randint(0, 6))
    domains = {v: rng(0, n) for v, n in zip(VARS, extents)}
    found = detect_iter_map([e for e, _ in items], domains)
    assert found, (found.error, [e for e, _ in items], extents)
    assert [int(x) for x in found.extents] == [n for _, n in items]
    tidy = detect_iter_map([simplify(e, domains) for e, _ in items], domains)
    assert not tidy or [int(x) for x in tidy.extents] == [n for _, n in items]
    outputs = [Var(f"o{n}") for n in range(len(items))]
    back = inverse_iter_map(found, outputs)
    inverse = [compile_expr(back[v], outputs) for v in VARS]
    points = list(itertools.product(*map(range, extents)))
    for point, out in zip(points, image([e for e, _ in items], points)):
        assert tuple(f(*out) for f in inverse) == point


@BOUNDED
@given(SEEDS)
def test_never_calls_bijective_what_is_not(seed):
    r = Random(seed)
    extents = [r.choice([1, 2, 3, 4, 6, 8]) for _ in VARS]
    lows = [r.choice([0, 0, 0, 1, 4]) for _ in VARS]
    indices = [mangled(r) for _ in range(r.randint(1, 3))]
    predicate = TRUE
    if r.random() < 0.5:
        predicate = LT(r.choice([*indices, VARS[0], VARS[1] * 4 + VARS[2]]), const(r.randint(1, 30)))
    domains = {v: rng(low, n) for v, low, n in zip(VARS, lows, extents)}
    holds = compile_expr(predicate, VARS)
    points = [p for p in itertools.product(*(range(a, a + n) for a, n in zip(lows, extents))) if holds(*p)]
    for check in ("bijective", "surjective"):
        found = detect_iter_map(indices, domains, predicate, check)
        if not found:
            continue
        values = image(indices, points)
        box = list(itertools.product(*(range(int(s.base), int(s.base) + int(s.extent)) for s in found.indices)))
        assert set(values) == set(box), (indices, extents, lows, predicate)
        if check == "bijective":
            assert len(values) == len(box), (indices, extents, lows, predicate)
            outputs = [Var(f"o{n}") for n in range(len(indices))]
            back = inverse_iter_map(found, outputs)
            inverse = [compile_expr(back[v], outputs) for v in VARS]
            for point, out in zip(points, values):
                assert tuple(f(*out) for f in inverse) == point


def mangled(r: Random) -> Expr:
    e: Expr = r.choice(VARS)
    for _ in range(r.randint(0, 3)):
        what = r.randrange(5)
        c = r.choice([2, 3, 4, 6, 8])
        e = [e + r.choice(VARS), e * c + r.choice(VARS), e // c, e % c, e + r.choice([0, 0, 1, 4])][what]
    return e


@BOUNDED
@given(SEEDS)
def test_subspace_division_recombines(seed):
    r = Random(seed)
    extents = [r.choice([1, 2, 3, 4, 8]) for _ in VARS]
    domains = {v: rng(r.choice([0, 0, 2]), n) for v, n in zip(VARS, extents)}
    inner_vars = [v for v in VARS if r.random() < 0.6]
    bindings = [
        r.choice([VARS[0] * extents[1] + VARS[1], VARS[0], VARS[2] + 0, VARS[0] * 4 + VARS[2], mangled(r)])
        for _ in range(2)
    ]
    found = subspace_divide(bindings, domains, inner_vars)
    if not found:
        return
    points = list(itertools.product(*(range(int(d.min), int(d.min) + int(d.extent)) for d in domains.values())))
    for e, (outer, outer_n), (inner, inner_n) in zip(bindings, found.outer, found.inner):
        f, a, b = (compile_expr(x, VARS) for x in (e, outer, inner))
        for p in points:
            assert f(*p) == a(*p) * int(inner_n) + b(*p), (e, outer, inner)
            assert 0 <= b(*p) < int(inner_n) and a(*p) < int(outer_n)


def test_division_by_hand():
    i, j, k = VARS
    n = Var("n")
    domains = {i: rng(0, 8), j: rng(0, 4), k: rng(0, 3)}
    d = subspace_divide([i * 4 + j, k], domains, [j, k])
    assert d.outer[0][0] is i and d.inner[0][0] is j and int(d.inner[0][1]) == 4
    assert int(d.outer[1][1]) == 1 and d.inner[1][0] is k
    symbolic = subspace_divide([i * n + j], {i: rng(0, 8), j: Range(const(0), n)}, [j])
    assert symbolic.outer[0][0] is i and symbolic.inner[0][1] is n
    mixed = subspace_divide([i * 3 + j], domains, [j])
    assert not mixed and "multiple" in mixed.error
    tied = subspace_divide([i * 4 + j], domains, [j], LT(i * 4 + j, const(30)))
    assert not tied and "ties" in tied.error


def test_predicates_cut_the_extent():
    i, j, _ = VARS
    found = detect_iter_map([i * 4 + j], {i: rng(0, 8), j: rng(0, 4)}, LT(i * 4 + j, const(30)))
    assert int(found.extents[0]) == 30
    single = detect_iter_map([i], {i: rng(0, 8)}, LT(i, const(5)))
    assert int(single.extents[0]) == 5


def test_symbolic_extents():
    f, n = Var("f"), Var("n")
    found = detect_iter_map([f // n, f % n], {f: Range(const(0), n * 8)})
    assert int(found.extents[0]) == 8 and found.extents[1] is n


@pytest.mark.parametrize(
    "indices,reason",
    [
        (lambda i, j: [i * 2 + j], "gaps or overlaps"),
        (lambda i, j: [i], "does not reach"),
        (lambda i, j: [i, i, j], "overlap"),
        (lambda i, j: [i // 3, j], "no multiple"),
        (lambda i, j: [i * j], "multiplies two loop variables"),
    ],
)
def test_failures_say_why(indices, reason):
    i, j, _ = VARS
    found = detect_iter_map(indices(i, j), {i: rng(0, 8), j: rng(0, 4)})
    assert not found and reason in found.error


@pytest.mark.parametrize(
    ("digits", "apart"),
    [
        (lambda f: [f % 2, f // 4], True),  # the digit between them is left out
        (lambda f: [f // 4, f % 2], True),
        (lambda f: [f % 4, f // 2], False),
        (lambda f: [f % 2, f // 3], False),
        (lambda f: [f % 4, f // 6], False),
    ],
)
def test_digits_that_leave_others_out(digits, apart):
    f = VARS[0]
    found = detect_iter_map(digits(f), {f: rng(0, 24)}, check="surjective")
    assert bool(found) == apart and (apart or "use the same digits" in found.error)


def test_counts():
    i, j, k = VARS
    found = detect_iter_map(
        [(i * 12 + j * 3 + k) % 8, (i * 12 + j * 3 + k) // 8], {i: rng(0, 2), j: rng(0, 4), k: rng(0, 3)}
    )
    assert found and prod(int(x) for x in found.extents) == 24


@BOUNDED
@given(SEEDS)
def test_digits_seen_at_once_are_those_found_step_by_step(seed):
    r = Random(seed)
    extents = [r.choice([1, 2, 3, 4]) for _ in VARS]
    items = [i for i in transformed(r, extents, r.randint(0, 3)) if r.random() < 0.9]
    other, check = Var("o"), r.choice(["bijective", "surjective", "none"])
    indices = [e * r.choice([1, 1, 1, 2]) + r.choice([const(0), const(3), other * 4]) for e, _ in items]
    domains = {v: rng(0, n) for v, n in zip(VARS, extents)}
    quick = itermap._mixed_radix(indices, domains, check)
    if quick is None:
        return
    slow = itermap._detect(Analyzer(domains), indices, domains, {}, TRUE, check)
    assert slow, slow.error
    for a, b in zip(quick.indices, slow.indices):
        assert (repr(a.base), repr(a.extent)) == (repr(b.base), repr(b.extent))
        said = [[(s.source, repr(s.lower), repr(s.extent), repr(s.scale)) for s in i.splits] for i in (a, b)]
        assert len(said[0]) == len(said[1]) and all(x[0] is y[0] and x[1:] == y[1:] for x, y in zip(*said))


@pytest.mark.parametrize("check", ["none", "surjective", "bijective"])
@pytest.mark.parametrize("low", [0, 3])
def test_loops_that_never_run(low, check):
    i = Var("i")
    empty = {i: Range(const(low), const(0))}
    for indices in ([i], [i, i], [i // 2, i % 2], [i % 2, i % 2]):
        found = detect_iter_map(indices, empty, check=check)  # an answer, whichever
        assert not found or len(found.indices) == len(indices)


def test_a_box_is_empty_where_a_domain_is():
    i, j, n = Var("i"), Var("j"), Var("n")
    assert covered_box([j], {j: Range(const(0), 3 - Max(i, const(2)))}) is None, "none where i is 3"
    (box,) = covered_box([j], {j: Range(const(0), n)})
    assert box.extent is n
