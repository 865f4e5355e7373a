"""Sliding windows that have partial results in common: share_window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ...analysis.block_regions import with_regions
from ...analysis.index import BlockRef, LoopRef
from ...analysis.reduction_forms import NotAReduction, Reduction, Update
from ...arith import Analyzer
from ...arith.linear import linear
from ...buffer import Buffer, IterVar, Range, decl_buffer
from ...errors import require, require_none
from ...expr import BufferLoad, Expr, IntImm, Var, cast, const
from ...script.printer import short_text
from ...stmt import BlockRealize, BufferStore, Stmt, seq
from ...visit import accesses, substitute, uses_var
from ..handles import BlockRV
from ..nests import add_alloc, insert_before
from ..primitive import primitive
from ..staged_copies import elementwise_block
from ..state import State, scope_of
from ._whole_nest import require_own_values, require_whole_nest, the_block


@dataclass(frozen=True)
class Slide:
    """How windows overlap: term ``k`` of result ``i`` is ``term`` at ``i + step * k``, of the first window's first term."""

    along: IterVar
    step: int
    term: Expr


@dataclass(frozen=True)
class WindowPlan:
    block: BlockRef
    loop: LoopRef
    reduction: Reduction
    size: int
    slide: Slide


def _check_share_window(state: State, loop: LoopRef) -> WindowPlan:
    """Compute what windows of a sliding reduction have in common once: of 2 terms, of these of 4, of 8 and so on.

    ``loop`` runs through the terms of a window, which depend on it and on one iterator of the results only by
    ``i + step * k``. Partial results of two terms, of four and so on, up to the largest power of two in the window,
    are computed for every place, each from two of those before; a result is made of at most one of each. A window of 31
    takes 8 operations instead of 31. Where the combiner is idempotent (``max``), two of the largest cover the window.
    The grouping of terms changes, and nothing else, as in ``rfactor``.

    Returns the blocks that compute partial results, named ``…_2``, ``…_4`` …; the old handle refers to the block that
    makes results of them, which is no reduction any more.

    Before, and after ``sch.share_window("k")``::

        for i, k in T.grid(8, 3):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi + vk]

        C_2 = T.alloc_buffer((9,), "float32")
        for ax0 in range(9):
            with T.block("C_2"):
                v0 = T.axis.spatial(9, ax0)
                C_2[v0] = A[v0] + A[v0 + 1]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = C_2[vi] + A[vi + 2]

    Raises ``ScheduleError`` when the block is not one whole reduction over ``loop`` alone, when windows are no slides
    of one another, or when the loops run anything else.
    """
    block = the_block(state, loop)
    found = Reduction.of(block.block)
    if isinstance(found, NotAReduction):
        require(False, found.rule, *found.parts, nodes=[block.node])
    assert isinstance(found, Reduction)
    update = found.of_one_value()
    require(update is not None and found.init is not None,
            "block {0} is more than the init and the update of one result",
            block, legal="this step before the init is a block of its own")  # fmt: skip
    assert update is not None
    window = _window(block, loop)
    require_whole_nest(state, block, [loop])
    require_own_values(
        block, update.store.buffer, [t.value for t in update.combination.terms] if update.combination else []
    )
    assert isinstance(window.dom.extent, IntImm)
    return WindowPlan(block, loop, found, window.dom.extent.value, _slide(block, update, window))


def _window(block: BlockRef, loop: LoopRef) -> IterVar:
    """The only reduction iterator of ``block``, which is ``loop``."""
    values = block.bindings
    reduced = [i for i in block.block.iter_vars if i.iter_type == "reduce"]
    require(len(reduced) == 1 and values[reduced[0].var] is loop.var,
            "loop {0} is not all that block {1} reduces over", loop.node, block, nodes=[loop.node],
            legal=lambda: [r.name for r in block.loops() if len(reduced) == 1 and values[reduced[0].var] is r.var])  # fmt: skip
    others = [i for i in block.block.iter_vars if i.iter_type == "opaque"]
    require_none(others, "iterator {1} of block {2} is opaque", lambda i: i.var.name, block, nodes=[block.node])
    window = reduced[0]
    used = [i for i in block.block.iter_vars if i is not window and uses_var(values[i.var], loop.var)]
    require_none(
        used, "iterator {1} of block {2} depends on loop {3}", lambda i: i.var.name, block, loop, nodes=[loop.node]
    )
    require(isinstance(window.dom.extent, IntImm) and window.dom.extent.value > 1,
            "a window of `{0}` terms: how many partial results it has is known of a constant number, two or more",
            lambda: short_text(window.dom.extent), nodes=[loop.node])  # fmt: skip
    return window


def _slide(block: BlockRef, update: Update, window: IterVar) -> Slide:
    """How windows overlap. Raises ``ScheduleError`` if they do not."""
    assert update.combination is not None
    term, first = update.combination.applied_to(None), window.dom.min
    assert isinstance(window.dom.extent, IntImm)
    analyzer = Analyzer()
    term = substitute(term, {window.var: window.var + first})  # from now on, terms are numbered from 0
    backwards = substitute(term, {window.var: const(window.dom.extent.value - 1, window.var.dtype) - window.var})
    spatial = [i for i in block.block.iter_vars if i is not window]
    for along in spatial:
        for numbered, sign in ((term, 1), (backwards, -1)):
            for step in _steps(term, along.var, window.var, sign):
                moved = along.var - const(step, along.var.dtype) * cast(along.var.dtype, window.var)
                slid = analyzer.simplify(substitute(numbered, {along.var: moved}))
                if not uses_var(slid, window.var) and analyzer.can_prove(along.dom.extent >= step):
                    return Slide(along, step, slid)
    require(
        False,
        "windows of block {0} have no terms in common: term `{1}` does not depend on `{2}` and an iterator of the results "
        "by `i + step * {2}` alone, with a step of at most as many as there are results",
        block,
        lambda: short_text(term),
        window.var.name,
        legal="rfactor, for partial results that windows do not share",
    )
    raise AssertionError


def _steps(term: Expr, along: Var, window: Var, sign: int) -> list[int]:
    """How far apart neighbouring terms of a window may be, in results: the quotients of their factors in each index."""
    found: list[int] = []
    for access in accesses(term):
        for index in access.indices:
            factors = {v[0]: f for v, f in linear(index).items() if len(v) == 1}
            mine, its = factors.get(along, 0), factors.get(window, 0)
            if mine and its and its * sign % mine == 0 and its * sign // mine > 0:
                found.append(its * sign // mine)
    return list(dict.fromkeys(found))


@primitive(check=_check_share_window, group="reduction")
def share_window(state: State, plan: WindowPlan) -> tuple[State, list[BlockRV]]:
    block, reduction = plan.block, plan.reduction
    target, parts = reduction.stores[0], _Partials(state, plan)
    stages = [parts.add(1 << n) for n in range(1, plan.size.bit_length())]
    values = [parts.value(size, [i.var for i in parts.iters], start) for size, start in _cover(plan)]
    if not reduction.starts_at_identity():
        values = [*(reduction.init or ()), *values]
    after = _without_terms(state, plan, BufferStore(target.buffer, parts.combined(values), target.indices))
    left = after.index.blocks[block.name]
    after = insert_before(after, [*left.loops(), left][0], seq(stages))
    scope = after.find_block(scope_of(block).name)
    after = after.replace(scope.block, add_alloc(scope.block, *parts.made.values()))
    return after, [after.block_rv(b.name) for b in parts.made.values()]


def _cover(plan: WindowPlan) -> list[tuple[int, int]]:
    """The sizes and starts of the partial results that a window consists of."""
    largest = 1 << (plan.size.bit_length() - 1)
    if plan.reduction.is_idempotent and largest < plan.size:
        return [(largest, 0), (largest, plan.size - largest)]
    sizes = [1 << n for n in reversed(range(plan.size.bit_length())) if plan.size >> n & 1]
    return [(size, sum(sizes[:n])) for n, size in enumerate(sizes)]


class _Partials:
    """Partial results, by the number of their terms, at every place of the iterators ``iters``."""

    def __init__(self, state: State, plan: WindowPlan):
        self.state, self.plan = state, plan
        self.made: dict[int, Buffer] = {}
        slide, analyzer = plan.slide, Analyzer()
        self.iters = [
            i
            for i in plan.block.block.iter_vars
            if i.iter_type != "reduce"
            and (i is slide.along or uses_var(slide.term, i.var) or not analyzer.can_prove(i.dom.extent > 0))
        ]

    def value(self, size: int, at: Sequence[Expr], ahead: int) -> Expr:
        """The partial result of ``size`` terms that begins ``ahead`` terms after the place ``at``."""
        slide, analyzer = self.plan.slide, Analyzer()
        here = {i.var: v + slide.step * ahead if i is slide.along else v for i, v in zip(self.iters, at)}
        if size == 1:
            return analyzer.simplify(substitute(slide.term, here))
        return BufferLoad(self.made[size], self._indices(list(here.values())))

    def _indices(self, at: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(Analyzer().simplify(v - i.dom.min) for v, i in zip(at, self.iters))

    def combined(self, values: Sequence[Expr]) -> Expr:
        return reduce(lambda a, b: self.plan.reduction.combine([a], [b])[0], values)

    def add(self, size: int) -> Stmt:
        """The loops and the block that compute those of ``size`` terms from those of half as many."""
        plan, analyzer = self.plan, Analyzer()
        more = plan.slide.step * (plan.size - size)
        box: list[Range] = []
        for i in self.iters:
            assert i.dom is not None
            longer = Range(i.dom.min, analyzer.simplify(i.dom.extent + more))
            box.append(longer if i is plan.slide.along else i.dom)
        name = self.state.fresh_block_name(f"{plan.block.name}_{size}")
        result = plan.reduction.targets[0]
        made = self.made[size] = decl_buffer([r.extent for r in box], result.dtype, name, scope=result.scope)

        def body(at: tuple[Var, ...]) -> Stmt:
            value = self.combined([self.value(size // 2, at, 0), self.value(size // 2, at, size // 2)])
            return BufferStore(made, value, self._indices(at))

        return elementwise_block(name, box, box, body)


def _without_terms(state: State, plan: WindowPlan, body: Stmt) -> State:
    """The program in which the block makes each result at once, without the loop of terms."""
    realize = plan.block.node
    pairs = [(i, v) for i, v in zip(realize.block.iter_vars, realize.iter_values) if i.iter_type != "reduce"]
    made = with_regions(realize.block.replace(iter_vars=tuple(i for i, _ in pairs), body=body, init=None))
    after = state.replace(realize, BlockRealize(tuple(v for _, v in pairs), realize.predicate, made))
    loop = after.index.loops[plan.loop.var].node
    return after.replace(loop, loop.body)
