"""Legality for one loop or nest: parallel execution, interchange, fusion with adjacent nests, distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

from ...aliases import memory_of, shares_memory, sharing
from ...buffer import Buffer
from ...expr import Var
from ...function import PrimFunc
from ...levels import ends_with_launch, is_block_axis, is_thread_axis
from ...node import cached_property, record
from ...poly import Names, Undecided
from ...stmt import PARALLEL, THREAD_BINDING, VECTORIZED, BlockRealize, For, Stmt
from ...visit import nodes_of, uses_var
from ..contents import contents, is_nest_of_blocks
from ..effects import PREFETCH, memory_effects
from ..evaluation import is_steered_by_memory
from ..index import index_of, loops_below
from ..reduction_forms import shared_results
from ..simple_blocks import commutes_under_any_order, distinguishes_iterations
from .affine import AffineForms, index_determines_iteration, indices_differ
from .initialization import could_be_private
from .order_question import compare
from .relations import (
    AccessRelation,
    Context,
    StatementRelations,
    by_loops,
    conflicting_pairs,
    loop_times,
    same_element,
    why_unknown,
    wider_access_map,
    without_swizzles,
    witness,
)
from .statements import Access, Statement, bare_statements_in, statements_in
from .tiers import NOT_SHOWN, PROVED, Proved, Question, Refuted, Tier, Unknown, Verdict, by_sets, tier, undecided


def check_parallel(func: PrimFunc, loop: For, kind: str = PARALLEL, ignored: frozenset[Var] = frozenset()) -> Verdict:
    """Whether ``loop`` carries no dependence: no element is accessed by two iterations and written by one of them.

    ``ignored``: pointers of memory that is not looked at. Buffers allocated inside the loop are each iteration's own, and
    so are those of its ``private`` clause. The answer names others that each iteration must have a copy of
    (:func:`tir.analysis.dependence.initialization.could_be_private`).
    """
    return LoopIndependent(func, loop, kind, ignored).answer()


def concurrent_iterations(func: PrimFunc, loop: For, ignored: frozenset[Var] = frozenset()) -> Verdict:
    """Whether ``loop``, if concurrent, carries no dependence through memory other than ``ignored``. For thread loops only
    global memory is checked: local buffers are per thread, and shared memory is synchronised by lowering."""
    if loop.kind == THREAD_BINDING:
        own = {b.data for b in nodes_of(loop) if type(b) is Buffer and ends_with_launch(b.scope)}
        verdict = check_parallel(func, loop, loop.kind, ignored | own | _reduced_across(loop))
        if isinstance(verdict, (Refuted, Unknown)):
            return replace(verdict, legal=_own_memory(func, loop, verdict.memory))
        return verdict
    return check_parallel(func, loop, loop.kind, ignored) if loop.kind in (PARALLEL, VECTORIZED) else PROVED


def _own_memory(func: PrimFunc, loop: For, buffer: Buffer | None) -> str:
    """Advice how threads that conflict in a buffer of the function can each have a private one."""
    if buffer is None or not any(buffer in ref.block.alloc_buffers for ref in index_of(func).blocks.values()):
        return ""
    scope = "shared" if is_block_axis(loop.thread) else "local"
    return (
        f'`{buffer.name}` in scope "{scope}", where each has memory of its own (set_scope first, or ask for that scope)'
    )


def _reduced_across(loop: For) -> frozenset[Var]:
    """Memory of the results of reductions shared by the threads of ``loop``, with or without their init."""
    found: set[Var] = set()
    if not is_thread_axis(loop.thread):
        return frozenset()
    for item in nodes_of(loop):
        results = shared_results(item.block) if type(item) is BlockRealize else ()
        if results:
            kinds = {i.iter_type for i, v in zip(item.block.iter_vars, item.iter_values) if uses_var(v, loop.loop_var)}
            if kinds == {"reduce"}:
                found |= memory_of(results)
    return frozenset(found)


@record
class LoopIndependent(Question):
    """The loop carries no dependence."""

    func: PrimFunc
    loop: For
    kind: str = PARALLEL
    ignored: frozenset[Var] = frozenset()

    def __str__(self) -> str:
        return f"iterations of loop `{self.loop.loop_var.name}` are independent"

    def anchor(self) -> tuple[Any, Any]:
        return self.func, (self.loop, self.kind, self.ignored)

    def unknown(self, error: Undecided) -> Unknown:
        return undecided(error, nodes=[self.loop])

    @tier(Tier.SIMPLE_BLOCK)
    def by_blocks(self) -> Verdict:
        """Each block's iterators distinguish the iterations, and no block accesses what another one writes."""
        index = index_of(self.func)
        place = index.place(self.loop)
        if not is_nest_of_blocks(self.loop):
            return NOT_SHOWN
        blocks = index.blocks_below(place)
        if not blocks or not are_disjoint([ref.block for ref in blocks]):
            return NOT_SHOWN
        for ref in blocks:
            inside = [p.node for p in loops_below(ref, place)]
            if not distinguishes_iterations(ref.node, self.loop, inside):
                return NOT_SHOWN
        return PROVED

    @tier(Tier.AFFINE)
    def by_forms(self) -> Verdict:
        """What the blocks of a nest write in one iteration, they access in no other one: affine indices differ."""
        place = index_of(self.func).place(self.loop)
        if not is_nest_of_blocks(self.loop):
            return NOT_SHOWN
        touched: dict[Var, list[tuple[AffineForms, Access]]] = {}
        written: set[Var] = set()
        for ref in place.index.blocks_below(place):
            around, found = [self.loop, *(p.node for p in loops_below(ref, place))], memory_effects(ref.block)
            if found.opaque or is_steered_by_memory(ref.node, around):
                return NOT_SHOWN
            loops = tuple([(f.loop_var, f.min, f.extent) for f in around])
            forms = AffineForms(Statement("", ref.node, (), (), loops, (), (), tuple(ref.bindings.items())), ())
            mine = [
                e for e in found.stored if e.kind != PREFETCH and not shares_memory(e, found.allocated | self.ignored)
            ]
            written |= memory_of([e for e in mine if e.write])
            for access in {(e.buffer, e.indices, e.loops): e for e in mine}.values():
                touched.setdefault(access.buffer.data, []).append((forms, access))
        pairs = (pair for memory in written for pair in combinations_with_replacement(touched[memory], 2))
        apart = all(indices_differ(*first, *second, self.loop.loop_var) for first, second in pairs)
        return PROVED if apart else NOT_SHOWN

    @tier(Tier.PAIRS)
    def by_pairs(self) -> Verdict:
        return _Iterations(self).verdict()


def are_disjoint(blocks: Sequence[Any]) -> bool:
    """Whether no block accesses what another one writes."""
    found = [memory_effects(b) for b in blocks]
    return all(a is b or (a.reads | a.writes).isdisjoint(b.writes) for a in found for b in found)


class _Iterations:
    """The accesses of the iterations of a loop. Inner loops that data bounds run any number of times."""

    def __init__(self, question: LoopIndependent):
        self.question = question
        self.names = Names()
        self.context = Context(question.func, question.loop, self.names)
        units = without_swizzles(bare_statements_in(question.loop))
        self.sides = [StatementRelations(u, self.names) for u in units]
        inner = (f for f in contents(question.loop.body) if type(f) is For and question.kind != THREAD_BINDING)
        own = memory_of(b for f in inner for b in f.private)
        for side in self.sides:
            side.touch(wider_access_map)
            side.ignored = side.unit.local | question.ignored | own
        changing = frozenset().union(*(side.unit.written for side in self.sides))
        self.forms = {id(side): AffineForms(side.unit, changing) for side in self.sides}
        self.differ: dict[frozenset[Any], bool] = {}
        self.private: dict[Var, bool] = {}
        self.inferred: list[Buffer] = []  # private ones that the loop's clause does not name

    def verdict(self) -> Verdict:
        for source in self.sides:
            for sink in self.sides:
                for first, second in conflicting_pairs(source, sink):
                    found = CarriedDependence(self, source, first, sink, second).answer()
                    if not isinstance(found, Proved):
                        return found
        return Proved(tuple(self.inferred)) if self.inferred else PROVED

    def is_private(self, buffer: Buffer) -> bool:
        loop, data = self.question.loop, buffer.data
        if data not in self.private:
            # threads have memory of their own by its scope, not by a clause
            declared = self.question.kind != THREAD_BINDING and bool(sharing(loop.private, buffer))
            self.private[data] = declared or could_be_private(self.question.func, loop, data)
            if self.private[data] and not declared:
                self.inferred.append(buffer)
        return self.private[data]


@record
class CarriedDependence(Question):
    """For all iterations x < y of a loop: no element is accessed by ``first`` in x and by ``second`` in y, or the
    buffer is privatizable."""

    iterations: _Iterations
    source: StatementRelations
    first: AccessRelation
    sink: StatementRelations
    second: AccessRelation

    def __str__(self) -> str:
        kinds = ["write" if a.access.write else "read" for a in (self.first, self.second)]
        name = self.iterations.question.loop.loop_var.name
        return f"loop `{name}` carries no dependence from {kinds[0]} to {kinds[1]} of `{self.first.access.buffer.name}`"

    def unknown(self, error: Undecided) -> Unknown:
        return replace(self.iterations.question.unknown(error), memory=self.first.access.buffer)

    @cached_property
    def _forms(self) -> tuple[AffineForms, Any, AffineForms, Any, Var]:
        forms, question = self.iterations.forms, self.iterations.question
        pair = self.first.access, self.second.access
        return forms[id(self.source)], pair[0], forms[id(self.sink)], pair[1], question.loop.loop_var

    @tier(Tier.AFFINE)
    def by_forms(self) -> Verdict:
        sides = (self.source.unit, self.first.access), (self.sink.unit, self.second.access)
        # the init, the reads and the writes of a reduction are of one element in the same loops
        both = frozenset([(a.buffer, a.indices, a.loops, unit.loops, unit.inner) for unit, a in sides])
        known = self.iterations.differ
        if both not in known:
            known[both] = indices_differ(*self._forms)
        return PROVED if known[both] else NOT_SHOWN

    @tier(Tier.ITERATOR_MAP)
    def by_iterator_map(self) -> Verdict:
        return PROVED if index_determines_iteration(*self._forms) else NOT_SHOWN

    @tier(Tier.PRIVATE)
    def by_privatization(self) -> Verdict:
        return PROVED if self.iterations.is_private(self.first.access.buffer) else NOT_SHOWN

    @tier(Tier.SETS)
    def by_sets(self) -> Verdict:
        found = self.iterations.context.restrict(same_element(self.first, self.second).increasing())
        if found.is_empty() or self.iterations.is_private(self.first.access.buffer):
            return PROVED
        loop, kind, buffer = self.iterations.question.loop, self.iterations.question.kind, self.first.access.buffer
        proof = witness(found, self.source, self.first, self.sink, self.second, "", " as well")
        reason = why_unknown([(self.source.unit, self.first.access), (self.sink.unit, self.second.access)])
        name = loop.loop_var.name
        if reason is not None:
            rule = f"cannot prove that iterations of loop `{name}` are independent, because {reason}"
            return Unknown(rule, proof, (loop,), buffer)
        what = {"vectorized": "vectorized", "unrolled": "unrolled", "thread_binding": "bound to threads"}
        rule = (
            f"loop `{name}` cannot be {what.get(kind, 'parallel')}: two of its iterations touch the same element, and "
        )
        return Refuted(rule + "one writes it", proof, (loop,), buffer)


@record
class Reordered(Question):
    """The perfect nest ``loops`` (outermost first) may run in ``new_order``."""

    func: PrimFunc
    loops: tuple[For, ...]
    new_order: tuple[For, ...]

    def __str__(self) -> str:
        return f"loops {', '.join(f'`{f.loop_var.name}`' for f in self.new_order)} may run in this order"

    @tier(Tier.SIMPLE_BLOCK)
    def by_block(self) -> Verdict:
        """The nest contains one block, whose instances commute."""
        inner: Any = self.loops[-1].body
        below: list[For] = []
        while isinstance(inner, For):
            below.append(inner)
            inner = inner.body
        alone = isinstance(inner, BlockRealize) and commutes_under_any_order(inner, [*self.loops, *below])
        return PROVED if alone else NOT_SHOWN

    @tier(Tier.PAIRS)
    def by_pairs(self) -> Verdict:
        variables, mine = [f.loop_var for f in self.new_order], {f.loop_var for f in self.loops}

        def reordered(unit: Statement) -> tuple[Any, ...]:
            pending = iter(variables)
            return tuple(next(pending) if isinstance(t, Var) and t in mine else t for t in unit.time)

        return _retimed(self.func, self.loops[0], statements_in(self.loops[0]), reordered, self.new_order)


def check_reorder(func: PrimFunc, loops: Sequence[For], new_order: Sequence[For]) -> Verdict:
    """Whether the perfect nest ``loops`` (outermost first) may run in ``new_order``."""
    return Reordered(func, tuple(loops), tuple(new_order)).answer()


def check_merge(func: PrimFunc, chains: Sequence[Sequence[For]]) -> Verdict:
    """Whether adjacent nests may be fused: each iteration runs the first chain's body, then the next's."""
    units: list[Statement] = []
    place: dict[int, int] = {}
    for position, chain in enumerate(chains):
        for unit in statements_in(chain[0]):
            place[id(unit)] = position
            units.append(replace(unit, time=(position, *unit.time)))
            place[id(units[-1])] = position

    def merged(unit: Statement) -> tuple[Any, ...]:
        position = place[id(unit)]
        depth = len(chains[position])
        return (*unit.time[1 : depth + 1], position, *unit.time[depth + 1 :])

    return _retimed(func, chains[0][0], units, merged, tuple(c[0] for c in chains))


def check_fission(func: PrimFunc, loop: For, cuts: Sequence[int]) -> Verdict:
    """Whether ``loop`` may be distributed at each cut (a position in its sequence)."""

    def distributed(unit: Statement) -> tuple[Any, ...]:
        return (sum(cut <= unit.time[1] for cut in cuts), *unit.time)

    return _retimed(func, loop, statements_in(loop), distributed, (loop,))


def _retimed(func: PrimFunc, where: Stmt, units: list[Statement], retime: Any, nodes: tuple[Any, ...]) -> Verdict:
    """Whether ``units`` may run at other times. Each instance has one time before and one after, whatever the ends of the
    loops, so that more instances than there are, where data decides, only show more broken dependences."""
    return by_sets(_retimed_by_sets, func, where, units, retime, nodes, nodes=nodes)


def _retimed_by_sets(
    func: PrimFunc, where: Stmt, units: list[Statement], retime: Any, nodes: tuple[Any, ...]
) -> Verdict:
    names = Names()
    length = max((len(u.time) for u in units), default=0) + 2
    sides = []
    for unit, plain in zip(units, without_swizzles(units)):
        looped = by_loops(plain)
        side = StatementRelations(looped, names)
        side.touch(wider_access_map)
        side.ignored = unit.local  # allocated below these loops: a buffer for each of their iterations
        side.moments = ([unit.time], [retime(unit)])
        side.before = loop_times(looped, unit.time, names, length)
        side.after = loop_times(looped, side.moments[1][0], names, length)
        sides.append(side)
    return compare(sides, Context(func, where, names), nodes)
