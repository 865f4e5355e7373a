"""Replaces each complete reduction by one block that writes its result, so that recomputation can be checked like a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...aliases import shares_memory
from ...arith import Analyzer
from ...arith.itermap import IterMap, detect_iter_map
from ...expr import BufferLoad, const, is_const
from ...function import PrimFunc
from ...stmt import Block, BlockRealize, BufferStore, For, Stmt, in_loops, seq
from ...visit import refresh, rewrite, substitute, uses_var
from ..effects import effects
from ..index import BlockRef, index_of
from ..simple_blocks import has_one_element, has_own_elements


def collapse_reductions(func: PrimFunc) -> PrimFunc:
    """``func`` with every reduction in loops of its own as one block over its spatial iterators.

    Order and accesses are those of the program, except that updates no longer read the result. Anything else (no init,
    an incomplete reduction domain, reduction loops around other statements) is unchanged.
    """
    return _with(func, _wholes(func))


def with_reductions_collapsed(before: PrimFunc, after: PrimFunc) -> tuple[PrimFunc, PrimFunc] | None:
    """Both programs with the reductions collapsed that have that form in both; None if there are none."""
    first, second = _wholes(before), _wholes(after)
    common = [name for name in first if name in second]
    if not common:
        return None
    return _with(before, {n: first[n] for n in common}), _with(after, {n: second[n] for n in common})


def _wholes(func: PrimFunc) -> dict[str, tuple[Stmt, Stmt]]:
    found = ((name, _whole(ref)) for name, ref in index_of(func).blocks.items())
    return {name: whole for name, whole in found if whole is not None}


def _with(func: PrimFunc, wholes: dict[str, tuple[Stmt, Stmt]]) -> PrimFunc:
    swaps = {id(old): new for old, new in wholes.values()}
    return func.with_body(rewrite(func.body, lambda n: swaps.get(id(n)))) if swaps else func


def _whole(ref: BlockRef) -> tuple[Stmt, Stmt] | None:
    """The loops of a reduction, and their replacement."""
    block = ref.block
    reduce = [(i, v) for i, v in zip(block.iter_vars, ref.node.iter_values) if i.iter_type == "reduce"]
    if not reduce or block.init is None or not _starts_its_results(block, block.init):
        return None
    loops = _loops_of(ref, reduce)
    chain = [f for f in loops if is_const(f.extent, 1) or any(uses_var(v, f.loop_var) for _, v in reduce)]
    spatial = [f for f in loops if f not in chain]
    whole: Any = _outside(ref.node, chain)
    if whole is None or not _complete(reduce, chain) or not _go_outside(spatial, chain, block):
        return None
    body: Any = substitute(_without_results(block.body), {i.var: v for i, v in reduce})
    for loop in reversed(chain):
        body = For(loop.loop_var, loop.min, loop.extent, "serial", body)
    whole = whole.replace(block=whole.block.replace(body=refresh(seq([block.init, body])), init=None))
    return (loops[0] if loops else ref.node), in_loops(spatial, whole)


def _outside(realize: BlockRealize, chain: Sequence[For]) -> BlockRealize | None:
    """``realize`` over its spatial iterators, outside of the loops ``chain``; None if these decide for which values it runs."""
    one = {f.loop_var: f.min for f in chain if is_const(f.extent, 1)}  # such a loop may be about anything
    pairs = zip(realize.block.iter_vars, realize.iter_values)
    kept = [(i, substitute(v, one)) for i, v in pairs if i.iter_type != "reduce"]
    values, predicate = tuple(v for _, v in kept), substitute(realize.predicate, one)
    if any(uses_var(e, [f.loop_var for f in chain]) for e in (predicate, *values)):
        return None
    block = realize.block.replace(iter_vars=tuple(i for i, _ in kept))
    return realize.replace(iter_values=values, predicate=predicate, block=block)


def _go_outside(spatial: Sequence[For], chain: Sequence[For], block: Block) -> bool:
    """Whether ``spatial`` loops may be moved outside of the reduction loops ``chain``."""
    bounds, inner = [e for f in spatial for e in (f.min, f.extent)], [f.loop_var for f in chain]
    return not spatial or (has_own_elements(block) and not any(uses_var(e, inner) for e in bounds))


def _starts_its_results(block: Block, init: Stmt) -> bool:
    """Whether a block updates only what its ``init`` stores, one element of each buffer, and stores all of these each time."""
    if block.match_buffers or not has_one_element(block):
        return False
    start, update = effects(init), effects(block.body)
    stores = [e for found in (start, update) for e in found if e.write]
    plain = all(isinstance(e.node, BufferStore) and not e.loops and not e.guards for e in stores)
    return plain and not (start.opaque or update.opaque) and update.writes <= start.writes


def _loops_of(ref: BlockRef, reduce: list[Any]) -> list[For]:
    """The loops around only this block, from the outermost reduction loop on, and those of one iteration just
    outside."""
    loops: list[For] = []
    inner: Any = ref
    for above in reversed(ref.loops()):
        if above.node.body is not inner.node:
            break
        loops.insert(0, above.node)
        inner = above
    about = [n for n, f in enumerate(loops) if any(uses_var(v, f.loop_var) for _, v in reduce)]
    start = about[0] if about else len(loops)
    while start and is_const(loops[start - 1].extent, 1):
        start -= 1
    return loops[start:]


def _complete(reduce: list[Any], chain: list[For]) -> bool:
    """Whether ``chain`` runs the reduction from its start over all of its domain, each value once."""
    domains = {f.loop_var: f.domain for f in chain if not is_const(f.extent, 1)}
    first = {f.loop_var: f.min for f in chain}
    one = {f.loop_var: f.min for f in chain if f.loop_var not in domains}
    values = [substitute(v, one) for _, v in reduce]
    found = detect_iter_map(values, domains, check="bijective") if domains else None
    extents = found.extents if isinstance(found, IterMap) else [const(1, i.dom.extent.dtype) for i, _ in reduce]
    analyzer = Analyzer()
    return (not domains or isinstance(found, IterMap)) and all(
        analyzer.can_prove_equal(substitute(v, first), i.dom.min) and analyzer.can_prove_equal(extent, i.dom.extent)
        for (i, v), extent in zip(reduce, extents)
    )


def _without_results(body: Stmt) -> Stmt:
    """``body`` without its reads of what it writes."""
    written = effects(body).writes
    return rewrite(
        body, lambda n: const(0, n.dtype) if isinstance(n, BufferLoad) and shares_memory(n, written) else None
    )
