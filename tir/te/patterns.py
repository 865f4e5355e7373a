"""What an operator may be fused with: asked of its function, not written down.

The pattern of a function, which elements of its inputs an element of its outputs needs, is read off the blocks: for
elementwise, broadcast and injective blocks off the indices of their loads; for reductions by
:class:`~tir.analysis.reduction_forms.Reduction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

from ..analysis.dependence.domains import Injective
from ..analysis.effects import effects
from ..analysis.reduction_forms import Reduction
from ..analysis.simple_blocks import is_simple_block
from ..arith.linear import key
from ..expr import BufferLoad, Expr, is_const
from ..function import PrimFunc
from ..stmt import Block, BlockRealize, BufferStore
from ..visit import contains, has_load, statements, vars_in, walk
from .to_primfunc import function_of


class Pattern(IntEnum):
    """From the easiest to fuse to what cannot be.

    ``ELEMENTWISE``: an element needs those at its own index. ``BROADCAST``: those at some of its indices, in order.
    ``INJECTIVE``: those at an index that is computed from its own: transposition, slices, gathers. ``REDUCTION``:
    many, each needed by one element alone; a chain of the former may be fused before it, and elementwise blocks after
    it. ``OUT_FUSABLE``: many, which other elements need too (matrix product, softmax); elementwise blocks may be fused
    after it. ``OPAQUE``: an order, a store at a computed place, a call: nothing is fused with it.

    >>> from tir import te
    >>> te.pattern(te.placeholder((4,)) + 1.0) <= te.Pattern.BROADCAST
    True
    """

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_FUSABLE = 4
    OPAQUE = 5


def pattern(made: Any) -> Pattern:
    """How elements of tensors, or of a function, depend on its inputs: elementwise, broadcast, injective, reduction,
    out-fusable or opaque (:class:`Pattern`). Computed from the blocks.

    >>> from tir import ops, te
    >>> A = te.placeholder((4, 8), name="A")
    >>> [te.pattern(t).name for t in (ops.exp(A), ops.sum(A, axis=1), ops.cumsum(A))]
    ['ELEMENTWISE', 'REDUCTION', 'OPAQUE']
    """
    return _pattern_of(function_of(made))


def _pattern_of(func: PrimFunc) -> Pattern:
    """The pattern of a function whose blocks stand side by side; one with blocks inside of others is opaque."""
    blocks = _blocks(func)
    if blocks is None:
        return Pattern.OPAQUE
    kinds = [block_pattern(b) for b in blocks]
    reductions = [n for n, kind in enumerate(kinds) if kind in (Pattern.REDUCTION, Pattern.OUT_FUSABLE)]
    worst = max(kinds, default=Pattern.ELEMENTWISE)
    if len(reductions) != 1 or worst is Pattern.OPAQUE:
        return Pattern.OUT_FUSABLE if len(reductions) > 1 and worst is not Pattern.OPAQUE else worst
    at = reductions[0]
    return worst if _ends_elementwise(blocks[at], blocks[at + 1 :]) else Pattern.OUT_FUSABLE


def _blocks(func: PrimFunc) -> list[Block] | None:
    """The blocks of a function in order; None if there are stores outside of them, or blocks inside of them."""
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    if root is None:
        return None
    found: list[Block] = []
    stack: list[Any] = [root.body]
    while stack:
        item = stack.pop()
        if isinstance(item, BlockRealize):
            if contains(Block, item.block.body):
                return None
            found.append(item.block)
        elif isinstance(item, BufferStore):
            return None
        elif not isinstance(item, Expr):
            stack += reversed(item.children())
    return found


def block_pattern(block: Block) -> Pattern:
    """The pattern of a block by itself."""
    if effects(block.body).opaque or block.match_buffers or block.alloc_buffers:
        return Pattern.OPAQUE
    kinds = {i.iter_type for i in block.iter_vars}
    if kinds <= {"spatial"} and block.init is None:
        return _map_pattern(block) if is_simple_block(block) else Pattern.OPAQUE
    if not kinds <= {"spatial", "reduce"} or not isinstance(Reduction.of(block), Reduction):
        return Pattern.OPAQUE
    return Pattern.REDUCTION if _each_once(block) else Pattern.OUT_FUSABLE


def _map_pattern(block: Block) -> Pattern:
    """Of a block that stores each element once, computed from loads."""
    worst = Pattern.ELEMENTWISE
    for store in _stores(block):
        for load in _loads(store):
            if load.buffer is store.buffer:
                return Pattern.OPAQUE
            worst = max(worst, _load_pattern(load, store))
    return worst


def _load_pattern(load: BufferLoad, store: BufferStore) -> Pattern:
    wanted, given = _axes(load), _axes(store)
    if wanted == given:
        return Pattern.ELEMENTWISE
    rest = iter(given)
    single = [is_const(i, 0) and is_const(s, 1) for i, s in zip(load.indices, load.buffer.shape)]
    in_order = all(skip or axis in rest for axis, skip in zip(wanted, single))  # a search of `rest` goes on from there
    return Pattern.BROADCAST if in_order else Pattern.INJECTIVE


def _each_once(block: Block) -> bool:
    """Whether no two iterations of a reduction read the same element: of what no index depends on data."""
    domains = {i.var: i.dom for i in block.iter_vars if i.dom is not None}
    targets = {s.buffer for s in _stores(block)}
    loads = [load for s in _stores(block) for load in _loads(s) if load.buffer not in targets]
    moving = {var for var, dom in domains.items() if not is_const(dom.extent, 1)}
    for load in loads:
        if has_load(*load.indices) or not moving <= {v for index in load.indices for v in vars_in(index)}:
            return False
    return all(Injective(tuple(load.indices), domains).answer().is_proved for load in loads)


def _ends_elementwise(reduction: Block, after: Sequence[Block]) -> bool:
    """Whether the blocks after a reduction read what depends on it at the index of their own element only."""
    changed = {s.buffer for s in _stores(reduction)}
    for block in after:
        for store in _stores(block):
            loads = [load for load in _loads(store) if load.buffer in changed]
            if any(_moving(load) != _moving(store) for load in loads):
                return False
            if loads:
                changed.add(store.buffer)
    return True


def _axes(access: BufferLoad | BufferStore) -> list[Any]:
    """The index and the extent along each axis, comparable."""
    return [(key(i), key(s)) for i, s in zip(access.indices, access.buffer.shape)]


def _moving(access: BufferLoad | BufferStore) -> list[Any]:
    """Those axes that have more than one element."""
    return [axis for axis, extent in zip(_axes(access), access.buffer.shape) if not is_const(extent, 1)]


def _stores(block: Block) -> Iterator[BufferStore]:
    return (n for n in statements(block.body) if isinstance(n, BufferStore))


def _loads(store: Any) -> Iterator[BufferLoad]:
    return (n for n in walk(store) if isinstance(n, BufferLoad))
