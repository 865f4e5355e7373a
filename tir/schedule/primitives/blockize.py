"""Turning a loop nest into one block: blockize."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

from ...analysis.block_regions import with_regions
from ...analysis.evaluation import entered
from ...analysis.index import BlockRef, LoopRef
from ...analysis.reduction_init import InitRuns, require_same_init
from ...analysis.simple_blocks import iterators
from ...arith import Analyzer
from ...arith.itermap import Division, subspace_divide
from ...buffer import IterVar, Range
from ...errors import require
from ...expr import Expr, Var, all_of, conjuncts, const, is_const
from ...node import frozendict
from ...script.printer import short_text
from ...stmt import Block, BlockRealize, For, Stmt, in_loops
from ...visit import refresh, substitute, uses_var, vars_in
from ..handles import BlockRV
from ..nests import without_unused
from ..primitive import primitive
from ..state import State
from .decompose_reduction import require_distinct_results


@primitive(group="tensor units")
def blockize(
    state: State,
    target: LoopRef | BlockRef | Sequence[BlockRef],
    preserve_unit_iters: bool = True,
    *,
    unsafe: bool = False,
) -> tuple[State, BlockRV]:
    """Turn the loops from ``target`` inwards, and the block in them, into one block.

    Returns the new block, named ``…_o``; the block inside keeps its name. ``preserve_unit_iters`` keeps iterators of
    extent one in the outer block. Adjacent blocks, given as a list, become one block around all of them, without
    iterators of extent one.

    Before, and after ``sch.blockize("ii")``::

        for io, ii in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(32, io * 8 + ii)
                B[vi] = A[vi] * 2.0

        for io in range(4):
            with T.block("B_o"):
                vi_o = T.axis.spatial(4, io)
                for ii in range(8):
                    with T.block("B"):
                        vi_i = T.axis.spatial(8, ii)
                        B[vi_o * 8 + vi_i] = A[vi_o * 8 + vi_i] * 2.0

    Raises ``ScheduleError`` when there is not exactly one block under ``target``, or its bindings cannot be divided
    into an outer and an inner part.
    """
    if not isinstance(target, (LoopRef, BlockRef)):
        from .blockize_set import blockize_set

        return blockize_set(state, target)
    require(not isinstance(target, BlockRef) or target.scope is not None, "the root block cannot be blockized")
    blocks = state.index.blocks_below(target)
    require(len(blocks) == 1,
            "there are {0} blocks under {1}, and blockize takes one",
            len(blocks), target, nodes=[b.node for b in blocks])  # fmt: skip
    block = blocks[0]
    require_only_loops(target, block)
    inner = [r for r in block.loops() if r is target or target in r.ancestors()]
    division = divide(block, inner)
    name = state.fresh_block_name(f"{block.name}_o")
    realize = outer_block(block, inner, division, name, preserve_unit_iters)
    after = state.replace(target.node, realize)
    return after, after.block_rv(name)


def require_only_loops(target: Any, block: BlockRef) -> None:
    place = block
    while place is not target and place.parent is not None:
        place = place.parent  # type: ignore[assignment]
        require(isinstance(place.node, For),
                "something other than loops stands between {0} and block {1}", target, block, nodes=[place.node])  # fmt: skip


def divide(block: BlockRef, inner: list[LoopRef]) -> Division:
    domains = block.loop_ranges()
    for ref in inner:
        for bound, consequence in (
            ("extent", "the parts would differ in size"),
            ("min", "it would not be known inside"),
        ):
            tied = next(
                (r for r in block.all_loops() if r not in inner and uses_var(getattr(ref.node, bound), r.var)), None
            )
            require(tied is None,
                    "the {0} of loop {1} depends on {2}, which is outside: {3}",
                    "start" if bound == "min" else bound, ref.node, tied.name if tied else "", consequence)  # fmt: skip
    found = subspace_divide(block.node.iter_values, domains, [r.var for r in inner], block.node.predicate)
    require(found,
            "the bindings of block {0} do not divide at {1}: {2}",
            block, inner[0].node if inner else block, getattr(found, "error", ""), nodes=[block.node])  # fmt: skip
    assert isinstance(found, Division)
    return found


def _outer_init(block: BlockRef, inner: list[LoopRef], realize: BlockRealize, init: Stmt) -> Stmt:
    """The init of the outer block, of all results of ``realize``, which is under the inner loops. Raises ``ScheduleError`` where
    these do not begin with it."""
    moved = _loops_from_the_first(block, inner)
    if moved:
        InitRuns.below(block, moved[0]).require_first()
    values = list(realize.iter_values)
    _require_init_at_start(block, inner, realize.block, values, realize.predicate)
    return _init_nest(realize.block.replace(body=init), inner, values, realize.predicate)


def outer_block(block: BlockRef, inner: list[LoopRef], division: Division, name: str, keep_units: bool) -> BlockRealize:
    """The outer block, with the inner loops and block inside it."""
    outer_iters: list[IterVar] = []
    outer_values: list[Expr] = []
    inner_iters: list[IterVar] = []
    inner_values: list[Expr] = []
    inside: dict[Var, Expr] = {}
    analyzer = Analyzer()
    around = Analyzer({ref.var: ref.node.domain for ref in block.loops() if ref not in inner})
    for iterator, (o_value, o_extent), (i_value, i_extent) in zip(
        block.block.iter_vars, division.outer, division.inner
    ):
        dtype = iterator.var.dtype
        whole: Expr = const(0, dtype)
        o_domain, i_domain = _domains(iterator, o_extent, i_extent)
        o_only = None if keep_units or not is_const(o_extent, 1) else around.simplify(o_value)
        if o_only is None or vars_in(o_only):
            o_var = Var(f"{iterator.var.name}_o", dtype)
            outer_iters.append(IterVar(o_domain, o_var, iterator.iter_type))
            analyzer.bind(o_var, o_domain)
            outer_values.append(o_value)
            whole = o_var * i_extent
        elif not is_const(o_only, 0):
            whole = o_only * i_extent
        if inner and (not is_const(i_extent, 1) or not is_const(i_value, 0)):
            i_var = Var(f"{iterator.var.name}_i", dtype)
            inner_iters.append(IterVar(i_domain, i_var, iterator.iter_type))
            analyzer.bind(i_var, i_domain)
            inner_values.append(i_value)
            whole = whole + i_var
        inside[iterator.var] = analyzer.simplify_index(whole)
    opened = substitute(block.block.replace(iter_vars=()), inside)
    init = opened.init
    inner_block = with_regions(opened.replace(iter_vars=tuple(inner_iters), init=None))
    inner_realize = BlockRealize(tuple(inner_values), division.inner_predicate, inner_block)
    inner_nest = in_loops((r.node for r in inner), inner_realize)
    outer_init = None
    if init is not None:
        outer_init = _outer_init(block, inner, inner_realize, init)
        if not any(i.iter_type == "reduce" for i in outer_iters):
            # Every outer instance has its own reduction: the init stays inside.
            inner_block = with_regions(inner_block.replace(init=init))
            inner_nest = in_loops((r.node for r in inner), inner_realize.replace(block=inner_block))
            outer_init = None
    predicate = division.outer_predicate
    if outer_init is not None:  # which would run where the reduction inside is empty
        if uses_var(outer_init, iterators(inner_block, "reduce")):
            require_same_init(block)
        if inner:
            require_distinct_results(block, inner[0])
        predicate = all_of([predicate, *_when_reduced(block, inner, inner_iters, inner_values)])
    outer = Block(tuple(outer_iters), (), (), name, inner_nest, outer_init)
    return BlockRealize(tuple(outer_values), predicate, with_regions(outer))


def _loops_from_the_first(block: BlockRef, inner: list[LoopRef]) -> list[LoopRef]:
    """The loops around ``block`` from the first on that reduces, or is one of ``inner``. Each iteration of those before
    them runs whole reductions, as before."""
    values = [v for i, v in zip(block.block.iter_vars, block.node.iter_values) if i.iter_type == "reduce"]
    loops = block.loops()
    return list(itertools.dropwhile(lambda r: r not in inner and not any(uses_var(v, r.var) for v in values), loops))


def _domains(iterator: IterVar, outer: Expr, inner: Expr) -> tuple[Range, Range]:
    """The domains of both parts of an iterator, whose extents, counted from zero, are given: a reduction starts at its
    first value, which need not be zero."""
    zero, first = const(0, iterator.var.dtype), iterator.dom.min if iterator.dom else const(0)
    if is_const(first, 0):
        return Range(zero, outer), Range(zero, inner)
    if is_const(outer, 1):
        return Range(zero, outer), cast(Range, iterator.dom)
    analyzer = Analyzer()
    begin = analyzer.simplify(first // inner)
    require(is_const(inner, 1) or analyzer.can_prove_equal(first % inner, 0),
            "{0} starts at {1}, inside of a part of {2}",
            iterator.var.name, lambda: short_text(first), lambda: short_text(inner))  # fmt: skip
    return Range(begin, analyzer.simplify(outer - begin)), Range(zero, inner)


def _when_reduced(block: BlockRef, inner: list[LoopRef], iters: list[IterVar], values: list[Expr]) -> list[Expr]:
    """The conditions under which the reductions that loops of ``inner`` make are not empty. Raises ``ScheduleError`` where
    only some of them may be: their results would get an init that they do not have."""
    spatial = [v for i, v in zip(iters, values) if i.iter_type != "reduce"]
    reduced = [r for r in inner if not any(uses_var(v, r.var) for v in spatial)]
    others = {r.var: r.range for r in inner if r not in reduced}
    found = entered([r.node.extent for r in reduced], Analyzer(others))
    tied = next((r for r in inner if any(uses_var(c, r.var) for c in found)), None)
    require(
        tied is None,
        "the reduction of block {0} may be empty in some iterations of loop {1}: the init of the outer block would run for all",
        block,
        tied.name if tied else "",
        legal="decompose_reduction before",
    )
    return found


def _require_init_at_start(
    ref: BlockRef, inner: list[LoopRef], block: Block, values: list[Expr], predicate: Expr
) -> None:
    """Require that the inner reduction iterators start where their loops start, so that init runs for every result."""
    pairs = [(i, v) for i, v in zip(block.iter_vars, values) if i.iter_type != "reduce"]
    start = {r.var: r.node.min for r in inner if not any(uses_var(v, r.var) for _, v in pairs)}
    analyzer = ref.analyzer()
    for condition in conjuncts(predicate):
        first = analyzer.simplify(substitute(condition, start))
        with analyzer.scope():
            analyzer.assume(condition, ref.node)
            require(
                analyzer.can_prove(first),
                "init of block {0} would not run for every result: `{1}` can be false where the reduction loops start",
                ref,
                lambda: short_text(first),
                legal="decompose_reduction first",
            )


def _init_nest(block: Block, inner: list[LoopRef], values: list[Expr], predicate: Expr) -> Stmt:
    """The init of the inner block over the inner spatial loops: the init of the outer block."""
    pairs = [(i, v) for i, v in zip(block.iter_vars, values) if i.iter_type != "reduce"]
    kept = [r for r in inner if any(uses_var(v, r.var) for _, v in pairs)]
    removed = {r.var: r.node.min for r in inner if r not in kept}
    made = block.replace(iter_vars=tuple(i for i, _ in pairs), name=f"{block.name}_init", init=None)
    made = with_regions(without_unused(made))  # the rest of what the block allocates and views is the update's
    condition = Analyzer().simplify(substitute(predicate, removed))
    realize = BlockRealize(tuple(v for _, v in pairs), condition, made)
    plain = [r.node if r.node.thread else r.node.replace(kind="serial", annotations=frozendict()) for r in kept]
    return refresh(in_loops(plain, realize))
