"""Legality against brute force: every instance enumerated, every conflicting pair compared."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir.analysis.dependence.equivalence import check
from tir.analysis.dependence.initialization import Initialized
from tir.analysis.dependence.loop_questions import check_merge, check_parallel, check_reorder
from tir.analysis.dependence.tiers import Refuted
from tir.analysis.simple_blocks import distinguishes_iterations, elements_distinguish
from tir.buffer import IterVar, Range, decl_buffer
from tir.expr import TRUE, BufferLoad, IntImm, Var, const
from tir.function import PrimFunc
from tir.node import frozendict
from tir.script import parse
from tir.stmt import Block, BlockRealize, BufferStore, For, root_block, seq
from tir.visit import substitute

N = 3
A, B, D = (decl_buffer((16, 16), name=name) for name in "ABD")
LOOPS = [Var(n) for n in ("i", "j", "x", "y")]
ITERS = [Var(n) for n in ("vi", "vj", "vx", "vy")]


def loop(var, body, extent=N):
    return For(var, IntImm(0), IntImm(extent), "serial", body)


def block(name, variables, values, body, init=None, kinds="ss"):
    iters = tuple(
        IterVar(Range(IntImm(0), IntImm(N)), v, "reduce" if k == "r" else "spatial") for v, k in zip(variables, kinds)
    )
    return BlockRealize(tuple(values), TRUE, Block(iters, (), (), name, body, init))


def function(body, params=(A, D), alloc=(B,)):
    handles = [Var(f"{b.name}_handle", "handle") for b in params]
    return PrimFunc(tuple(handles), root_block(body, alloc), buffer_map=frozendict(zip(handles, params)))


def affine(form, v):
    """``form`` is (a, b, c): a * v0 + b * v1 + c."""
    return v[0] * form[0] + v[1] * form[1] + form[2]


coefficients = st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(4, 6))
index = st.tuples(coefficients, coefficients)


def value(form, point):
    return form[0] * point[0] + form[1] * point[1] + form[2]


def touches(writes, reads, point):
    for kind, (buffer, forms) in (("w", writes), ("r", reads)):
        yield kind, (buffer.name, *(value(f, point) for f in forms))


def broken(before, after, touched, commute=()):
    """Whether some conflicting pair of instances changes its order; both lists hold (name, point)."""
    place = {instance: n for n, instance in enumerate(after)}
    for first, second in itertools.combinations(before, 2):
        if first[0] == second[0] and first[0] in commute:
            continue
        for (k1, e1), (k2, e2) in itertools.product(touched(first), touched(second)):
            if e1 == e2 and "w" in (k1, k2) and place[first] > place[second]:
                return True
    return False


POINTS = list(itertools.product(range(N), repeat=2))


def store(write, read, v):
    target, source = write[0], read[0]
    load = BufferLoad(source, tuple(affine(f, v) for f in read[1]))
    return BufferStore(target, load * 2.0 + 1.0, tuple(affine(f, v) for f in write[1]))


@settings(max_examples=60)
@given(index, index)
def test_reorder_of_one_block_is_exact(write, read):
    v = ITERS[:2]
    touched = lambda instance: list(touches((A, write), (A, read), instance[1]))  # noqa: E731
    body = block("S", v, LOOPS[:2], store((A, write), (A, read), v))
    inner = loop(LOOPS[1], body)
    outer = loop(LOOPS[0], inner)
    func = function(outer)
    before = [("S", p) for p in POINTS]
    after = [("S", (i, j)) for j in range(N) for i in range(N)]
    verdict = check_reorder(func, [outer, inner], [inner, outer])
    assert isinstance(verdict, Refuted) == broken(before, after, touched)
    if isinstance(verdict, Refuted):
        assert len(verdict.witness) == 2 and "S at (" in verdict.witness[0]


@settings(max_examples=60)
@given(index, index, index, index)
def test_merge_and_swap_and_interleave_are_exact(w1, r1, w2, r2):
    touched = lambda instance: list(  # noqa: E731
        touches((B, w1), (A, r1), instance[1]) if instance[0] == "P" else touches((D, w2), (B, r2), instance[1])
    )
    p = block("P", ITERS[:2], LOOPS[:2], store((B, w1), (A, r1), ITERS[:2]))
    c = block("C", ITERS[2:], LOOPS[2:], store((D, w2), (B, r2), ITERS[2:]))
    nest_p, nest_c = loop(LOOPS[0], loop(LOOPS[1], p)), loop(LOOPS[2], loop(LOOPS[3], c))
    func = function(seq([nest_p, nest_c]))
    before = [("P", x) for x in POINTS] + [("C", x) for x in POINTS]
    merged = [(n, x) for x in POINTS for n in "PC"]
    both = check_merge(func, [[nest_p, nest_p.body], [nest_c, nest_c.body]])
    assert isinstance(both, Refuted) == broken(before, merged, touched)

    swapped = function(seq([nest_c, nest_p])).replace(params=func.params, buffer_map=func.buffer_map)
    assert isinstance(check(func, swapped), Refuted) == broken(before, before[9:] + before[:9], touched)

    rows = [(n, (i, j)) for i in range(N) for n in "PC" for j in range(N)]
    moved_p = loop(LOOPS[1], BlockRealize((LOOPS[2], LOOPS[1]), TRUE, p.block))
    at_row = function(loop(LOOPS[2], seq([moved_p, loop(LOOPS[3], c)])))
    at_row = at_row.replace(params=func.params, buffer_map=func.buffer_map)
    assert isinstance(check(func, at_row), Refuted) == broken(before, rows, touched)


@settings(max_examples=60)
@given(index, index)
def test_parallel_is_exact(write, read):
    v = ITERS[:2]
    inner = loop(LOOPS[1], block("S", v, LOOPS[:2], store((A, write), (A, read), v)))
    outer = loop(LOOPS[0], inner)
    func = function(outer)

    def clash(axis):
        for p, q in itertools.product(POINTS, repeat=2):
            if p[axis] == q[axis] or (axis == 1 and p[0] != q[0]):
                continue
            for (k1, e1), (k2, e2) in itertools.product(
                touches((A, write), (A, read), p), touches((A, write), (A, read), q)
            ):
                if e1 == e2 and "w" in (k1, k2):
                    return True
        return False

    assert (not check_parallel(func, outer).is_proved) == clash(0)
    assert (not check_parallel(func, inner, "vectorized").is_proved) == clash(1)


def reduction(op=None):
    vi, vk = ITERS[:2]
    load = BufferLoad(D, (vi, IntImm(0)))
    term = BufferLoad(A, (vi, vk))
    update = BufferStore(D, op(load, term) if op else load + term, (vi, IntImm(0)))
    return block("R", (vi, vk), LOOPS[:2], update, BufferStore(D, const(0.0, "float32"), (vi, IntImm(0))), "sr")


def test_reduction_updates_commute_but_not_before_init():
    inner = loop(LOOPS[1], reduction())
    outer = loop(LOOPS[0], inner)
    func = function(outer)
    assert check_reorder(func, [outer, inner], [inner, outer]).is_proved
    verdict = check_parallel(func, inner, "vectorized")
    assert isinstance(verdict, Refuted) and "R" in verdict.witness[0]
    # the first step of the reduction, which holds the init, moved last
    late = BlockRealize((LOOPS[0], IntImm(N - 1) - LOOPS[1]), TRUE, reduction().block)
    late = late.replace(block=inner.body.block)
    after = func.replace(body=function(loop(LOOPS[0], loop(LOOPS[1], late))).body)
    assert not check(func, after).is_proved


def test_order_matters_where_updates_do_not_commute():
    def decay(old, new):
        return old * 0.5 + new

    inner = loop(LOOPS[1], reduction(decay))
    outer = loop(LOOPS[0], inner)
    func = function(outer)
    backwards = BlockRealize((LOOPS[0], (LOOPS[1] + 1) % N), TRUE, inner.body.block)
    after = func.replace(body=function(loop(LOOPS[0], loop(LOOPS[1], backwards))).body)
    assert not check(func, after).is_proved
    assert check_reorder(func, [outer, inner], [inner, outer]).is_proved


@pytest.mark.parametrize("parts, tail, legal", [((2, 2), True, True), ((2, 2), False, False), ((1, 2), False, False)])
def test_split_must_run_every_instance_once(parts, tail, legal):
    v = ITERS[:2]
    body = block("S", v, LOOPS[:2], BufferStore(D, BufferLoad(A, tuple(v)) * 2.0, tuple(v)))
    func = function(loop(LOOPS[0], loop(LOOPS[1], body)))
    bound = LOOPS[2] * parts[1] + LOOPS[3]
    realize = BlockRealize((bound, LOOPS[1]), bound < N if tail else TRUE, body.block)
    nest = loop(LOOPS[2], loop(LOOPS[3], loop(LOOPS[1], realize), parts[1]), parts[0])
    verdict = check(func, func.replace(body=function(nest).body))
    assert verdict.is_proved == legal


def test_recomputing_a_producer_is_legal_and_a_self_update_is_not():
    v, w = ITERS[:2], ITERS[2:]
    for update, legal in ((BufferLoad(A, tuple(v)) * 2.0, True), (BufferLoad(B, tuple(v)) + 1.0, False)):
        p = block("P", v, LOOPS[:2], BufferStore(B, update, tuple(v)))
        c = block("C", w, LOOPS[2:], BufferStore(D, BufferLoad(B, tuple(w)) + 1.0, tuple(w)))
        make, use = loop(LOOPS[0], loop(LOOPS[1], p)), loop(LOOPS[3], c)
        func = function(seq([make, loop(LOOPS[2], use)]))
        after = func.replace(body=function(loop(LOOPS[2], seq([make, use]))).body)
        assert check(func, after).is_proved == legal


def test_data_dependent_indices_touch_the_whole_dimension():
    where = decl_buffer((16,), "int32", name="where")
    v = ITERS[:2]
    body = block("G", v, LOOPS[:2], BufferStore(D, BufferLoad(A, tuple(v)), (BufferLoad(where, (v[0],)), v[1])))
    inner = loop(LOOPS[1], body)
    outer = loop(LOOPS[0], inner)
    func = function(outer, params=(A, D, where))
    assert not check_parallel(func, outer).is_proved
    assert check_parallel(func, inner).is_proved


@pytest.mark.parametrize("shift, missing", [(0, None), (1, "C at (vx=2")])
def test_every_read_is_covered_by_an_earlier_write(shift, missing):
    v, w = ITERS[:2], ITERS[2:]
    p = block("P", v, LOOPS[:2], BufferStore(B, BufferLoad(A, tuple(v)), tuple(v)))
    c = block("C", w, LOOPS[2:], BufferStore(D, BufferLoad(B, (w[0] + shift, w[1])) + 1.0, tuple(w)))
    func = function(seq([loop(LOOPS[0], loop(LOOPS[1], p)), loop(LOOPS[2], loop(LOOPS[3], c))]))
    verdict = Initialized(func, B).answer()
    assert verdict.is_proved if missing is None else verdict.witness[0].startswith(missing)


def test_a_loop_of_unknown_extent_determines_only_itself():
    i, repeated, n = Var("i"), Var("r"), Var("n")
    body = loop(repeated, BufferStore(D, const(1.0, "float32"), (i, IntImm(0))), 3)
    outer = For(i, IntImm(0), n, "serial", body)
    assert elements_distinguish([i], outer, [outer.body])
    assert not elements_distinguish([i], outer.body, [outer])


def test_loops_of_one_name_below_a_parallel_loop():
    outer, *inner = Var("i"), Var("a"), Var("a")
    v = IterVar(Range(IntImm(0), IntImm(8)), Var("v"), "spatial")
    value = outer * 4 + inner[0] + inner[1]
    body = BufferStore(D, const(1.0, "float32"), (v.var, IntImm(0)))
    made = BlockRealize((value,), TRUE, Block((v,), (), (), "S", body))
    nest = loop(outer, loop(inner[0], loop(inner[1], made, 2), 2), 2)
    assert distinguishes_iterations(made, nest, [nest.body, nest.body.body]) is False


@pytest.mark.parametrize(
    ("read", "legal"),
    [((0, 1), True), ((1, 0), False), ((0, 0), True), ((1, 1), True)],
)
def test_an_update_of_an_element_of_its_own_may_be_reordered(read, legal):
    """``A[v0, v1] = A[…] * 2 + 1``, by which iterators it reads."""
    v = ITERS[:2]
    body = block("S", v, LOOPS[:2], BufferStore(A, BufferLoad(A, tuple(v[k] for k in read)) * 2.0, tuple(v)))
    inner = loop(LOOPS[1], body)
    outer = loop(LOOPS[0], inner)
    assert isinstance(check_reorder(function(outer), [outer, inner], [inner, outer]), Refuted) != legal


@pytest.mark.parametrize(("value", "legal"), [(lambda var: var, True), (lambda var: 4 - var, False)])
def test_a_bare_statement_does_the_same_at_the_same_values_of_its_loops(value, legal):
    """A loop that was reversed has a new variable: an equal value stands for another iteration."""
    text = "@T.prim_func\ndef f(B: T.Buffer((6,), 'float32')):\n    for i in range(5):\n        B[i + 1] = B[i] * 2.0\n"
    before = parse(text)
    old = before.body
    var = old.loop_var.replace()
    after = before.with_body(old.replace(loop_var=var, body=substitute(old.body, {old.loop_var: value(var)})))
    assert check(before, after).is_proved == legal


@pytest.mark.parametrize(
    "body",
    [
        'T.evaluate(T.call_extern("void", "fill", T.address_of(B[v * 4 + w])))',
        "for u in range(2):\n                B[v * 4 + w + u] = T.float32(u)",
        "B[v * 4 + w:v * 4 + w + 2] = T.broadcast(T.float32(v), 2)",
    ],
)
def test_instances_that_write_more_than_one_element_may_meet(body):
    """``B[v * 4 + w]`` is another element for each instance, and so is the next one; but one of theirs is the same."""
    func = parse(f"""
@T.prim_func
def main(B: T.Buffer((17,), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(B[v * 4 + w:v * 4 + w + 2])
            {body}
""")
    outer = func.body.block.body
    verdict = check_reorder(func, [outer, outer.body], [outer.body, outer])
    assert not verdict.is_proved and "two writes of one element" in verdict.rule
