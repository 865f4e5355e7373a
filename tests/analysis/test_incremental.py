"""What is made from the facts of the program before a step is what is found in a program without history."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.gpu_examples import load
from tir.analysis.contents import NAMING, added, kept_members, sub_statements
from tir.analysis.dependence.initialization import could_be_private
from tir.analysis.index import BlockRef, Index, LoopRef, Place, index_of
from tir.analysis.users import blocks_using
from tir.analysis.violations import violations
from tir.analysis.wellformed import check, scope_of
from tir.expr import Var, const
from tir.function import IRModule, PrimFunc
from tir.node import made_from
from tir.schedule.invariants import shared_writes, thread_memory
from tir.schedule.state import State
from tir.script import parse
from tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For, SeqStmt, Stmt, root_block, seq
from tir.testing.programs import random_program
from tir.testing.schedules import BLOCK_PRIMITIVES, LOOP_PRIMITIVES, random_schedule
from tir.visit import buffers_in, rewrite, walk


@pytest.fixture(autouse=True, params=["long", "short"])
def sequences(request, monkeypatch):
    """With sequences of two statements taken to be long, and to be short."""
    monkeypatch.setattr("tir.stmt.FEW", 1 if request.param == "long" else 16)


SEEDS = range(9100, 9120)
STEPS = [*LOOP_PRIMITIVES, *BLOCK_PRIMITIVES]


def test_members_are_kept_where_their_order_is():
    a, b, c, d = (Evaluate(const(n)) for n in range(4))
    for old, new, kept in [
        ((a, b, c), (a, d, c), {a, c}),
        ((a, b, c), (c, d, a), set()),
        ((a, b), (d, a, b), {a, b}),
        ((a, b, c), (c, a), set()),
        ((a, b), (c, d), set()),
    ]:
        assert kept_members(SeqStmt(old), SeqStmt(new)) == kept


def afresh(func: PrimFunc) -> PrimFunc:
    """The same program made of statements that nothing is known of."""
    return func.with_body(rewrite(func.body, lambda n: n.replace() if isinstance(n, (Stmt, Block)) else None))


def versions(seed: int) -> list[PrimFunc]:
    sch, _ = random_schedule(random_program(seed), seed, 8, STEPS)
    return [step.mod["main"] for step in sch.history]


def _key(place: Place) -> Any:
    return place.var if isinstance(place, LoopRef) else place.name if isinstance(place, BlockRef) else type(place.node)


def _described(index: Index, func: PrimFunc) -> Any:
    refs = [*index.loops.values(), *index.blocks.values()]
    return (
        [(_key(ref), ref.scope and ref.scope.name, [_key(above) for above in ref.ancestors()]) for ref in refs],
        [[_key(b) for b in index.blocks_below(ref)] for ref in refs],
        [(ref.name, [c.name for c in ref.children]) for ref in index.blocks.values()],
        [
            (r.name, b.name, [c.name for c in blocks_using(r, b)])
            for r in index.blocks.values()
            for b in buffers_in(func.body)
        ],
        [loop.loop_var for loop in index.marked],
        [view.buffer for view in index.views],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_index_is_that_of_the_program_alone(seed):
    for func in versions(seed):
        alone = afresh(func)
        assert _described(index_of(func), func) == _described(Index(alone), alone)


def _members_naming(func: PrimFunc) -> list[list[int]]:
    """In each sequence, the numbers of the members in which each buffer, or one of each two, occurs."""
    buffers = buffers_in(func.body)
    asked = [*([b] for b in buffers), *zip(buffers, buffers[1:])]
    sequences = [s for s in walk(func.body) if isinstance(s, SeqStmt)]
    return [[s.stmts.index(m) for m in NAMING.of_any(s, names)] for s in sequences for names in asked]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_members_that_name_a_buffer_are_those_of_the_program_alone(seed):
    for func in versions(seed):
        assert _members_naming(func) == _members_naming(afresh(func))
        assert all(numbers == sorted(numbers) for numbers in _members_naming(func))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_statement_is_found_where_it_is(seed):
    func = versions(seed)[-1]
    parents = {id(c): p for p in walk(func.body) for c in sub_statements(p)}
    for node in [n for n in walk(func.body) if isinstance(n, (Stmt, Block))]:
        place = Index(func).place(node)
        assert place.node is node
        assert (place.parent and place.parent.node) is parents.get(id(node))
    with pytest.raises(KeyError):
        Index(func).place(afresh(func).body)


def _statements(func: PrimFunc) -> set[Any]:
    return {n for n in walk(func.body) if isinstance(n, (For, BlockRealize))}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_difference_is_what_one_of_two_programs_lacks(seed):
    funcs = versions(seed)
    for before, after in zip(funcs, funcs[1:]):
        found = added(before.body, after.body)
        assert set(found) == _statements(after) - _statements(before)
        assert found == [n for n in walk(after.body) if n in set(found)]
        names = [{n.loop_var if type(n) is For else n.block.name for n in _statements(f)} for f in (before, after)]
        assert set(Index(before).keys_without(Index(after))) == names[0] - names[1]


def _broken(state: State, random: Random) -> State | None:
    """The program with a fault in one place: a name taken twice, a variable of elsewhere, memory without allocation."""
    blocks = [ref for ref in state.index.blocks.values() if ref.scope is not None]
    loops = list(state.index.loops.values())
    ref, other = random.choice(blocks), random.choice(blocks)
    kind = random.randrange(3)
    if kind == 0 and ref is not other:
        return state.replace(ref.block, ref.block.replace(name=other.name))
    if kind == 1 and isinstance(ref.block.body, BufferStore) and loops:
        store = ref.block.body
        var = random.choice(loops).var
        return state.replace(store, store.replace(indices=tuple(var for _ in store.indices)))
    owners = [r for r in state.index.blocks.values() if r.block.alloc_buffers]
    if kind == 2 and owners:
        owner = random.choice(owners)
        return state.replace(owner.block, owner.block.replace(alloc_buffers=owner.block.alloc_buffers[1:]))
    return None


@pytest.mark.parametrize("name", ["sgemm", "mma_gemm", "conv2d"])
def test_a_good_program_is_known_to_be_by_its_scope_alone(name):
    _, sch = load(name).small()
    for step in sch.history:
        (func,) = step.mod.functions.values()
        assert scope_of(func.body) is not None and not check(func)
        assert not violations(func)


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_are_found_as_in_the_program_alone(seed):
    random = Random(seed)
    found = 0
    for func in versions(seed):
        assert not check(func)
        for _ in range(4):
            made = _broken(State(IRModule.of(func), "main"), random)
            if made is not None:
                messages = {p.message for p in check(made.func)}
                assert messages == {p.message for p in check(afresh(made.func))}
                assert messages == {p.message for p in violations(made.func)}
                found += bool(messages)
    assert found


def _private(func: PrimFunc) -> list[Any]:
    """The buffers that each iteration of each loop could have for itself, by name."""
    index = index_of(func)
    memory = [b.data for _, b in index.allocations(lambda scope: True)]
    loops = [ref.node for ref in index.loops.values()]
    return [(f.loop_var.name, sorted(v.name for v in memory if could_be_private(func, f, v))) for f in loops]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_privatizable_is_that_of_the_program_alone(seed):
    for func in versions(seed):
        assert _private(func) == _private(parse(func.script()))


@pytest.mark.parametrize("name", ["sgemm", "mma_gemm"])
def test_the_memory_of_threads_is_judged_as_in_the_program_alone(name):
    _, sch = load(name).small()
    for step in sch.history:
        (func,) = step.mod.functions.values()
        alone = parse(func.script())
        for asked in (thread_memory, shared_writes):
            found = [[(p.about, p.rule) for p in asked.problems_when_complete(f)] for f in (func, alone)]
            assert found[0] == found[1]


def test_a_loop_whose_variable_another_had_is_found_once_that_is_gone():
    var = Var("i")
    loops = [For(var, const(0), const(4), "serial", Evaluate(const(n))) for n in range(3)]
    before = PrimFunc((), root_block(seq(loops)))
    assert len(index_of(before).loops) == 1
    fewer = rewrite(before.body, lambda n: seq(n.stmts[1:]) if isinstance(n, SeqStmt) else None)
    after = made_from(before, before.with_body(fewer))
    assert index_of(after).loops[var].node in loops[1:]
