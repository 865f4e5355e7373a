"""Reductions taken as a whole, for the question whether a block may run again: each result is made at once, or remade."""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...expr import BufferLoad, Var, const, is_const
from ...function import PrimFunc
from ...script.printer import short_text
from ...stmt import BlockRealize, BufferStore, For, seq
from ...visit import rewrite, substitute, uses_var
from ..blocks import refresh
from ..state import BlockRef, index_of


def whole_reductions(func: PrimFunc) -> PrimFunc:
    """``func`` with every reduction in loops of its own as one block over its spatial iterators.

    Only the order and the accesses are those of the program: the updates no longer read the result. What is not of that
    form (no init, an incomplete reduction domain, reduction loops around other statements) stays as it is.
    """
    swaps: dict[int, Any] = {}
    for ref in index_of(func).blocks.values():
        found = _whole(ref)
        if found is not None:
            swaps[id(found[0])] = found[1]
    return func.with_body(rewrite(func.body, lambda n: swaps.get(id(n)))) if swaps else func


def _whole(ref: BlockRef) -> tuple[For, BlockRealize] | None:
    block = ref.block
    store = block.body
    pairs = list(zip(block.iter_vars, ref.node.iter_values))
    reduce = [(i, v) for i, v in pairs if i.iter_type == "reduce"]
    kept = [(i, v) for i, v in pairs if i.iter_type != "reduce"]
    if block.init is None or not reduce or not isinstance(store, BufferStore):
        return None
    chain: list[For] = []
    inner: Any = ref
    for above in reversed(ref.loops()):
        if above.node.body is not inner.node or not any(v is above.var for _, v in reduce):
            break
        chain.insert(0, above.node)
        inner = above
    analyzer = Analyzer()
    by_var = {f.loop_var: f for f in chain}
    for iterator, value in reduce:
        loop = by_var.pop(value, None) if isinstance(value, Var) else None
        if loop is None or not is_const(loop.min, 0) or not is_const(iterator.dom.min, 0):
            return None
        if not analyzer.can_prove_equal(loop.extent, iterator.dom.extent):
            return None
    mine = [f.loop_var for f in chain]
    if by_var or uses_var(ref.node.predicate, mine) or any(uses_var(v, mine) for _, v in kept):
        return None
    body: Any = substitute(_unread(store), {i.var: v for i, v in reduce})
    for loop in reversed(chain):
        body = For(loop.loop_var, loop.min, loop.extent, "serial", body)
    body = refresh(seq([block.init, body]))
    made = block.replace(iter_vars=tuple(i for i, _ in kept), body=body, init=None)
    return chain[0], ref.node.replace(iter_values=tuple(v for _, v in kept), block=made)


def _unread(store: BufferStore) -> BufferStore:
    """``store`` without its reads of the very element that it writes."""
    target = [short_text(i) for i in store.indices]

    def visit(item: Any) -> Any:
        if isinstance(item, BufferLoad) and item.buffer is store.buffer:
            return const(0, item.dtype) if [short_text(i) for i in item.indices] == target else None
        return None

    return store.replace(value=rewrite(store.value, visit))
